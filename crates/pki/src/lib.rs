//! Certificate authorities, certificates and kubeconfigs as pure functions.
