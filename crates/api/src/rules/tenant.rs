//! Rules of the tenant as a whole: its name, its datastore, its certificates.

use super::Rule;
use super::expressions::{unchanged, unique};
use crate::reserved::{DATASTORE_NAMES, cel_list};

pub(super) fn rules() -> Vec<Rule> {
    [names(), datastore(), datastore_names(), certificates()].concat()
}

fn names() -> Vec<Rule> {
    vec![
        Rule::new(
            "",
            "self.metadata.name.size() <= 63 && \
             self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "metadata.name: the provided name is invalid, because the tenant's Service has the same \
             name; write at most 63 lower-case letters, digits and '-', starting with a letter and \
             ending with a letter or digit",
        )
        .at_creation(),
        Rule::new(
            "",
            "!self.metadata.name.endsWith('-konnectivity') && \
             !self.metadata.name.endsWith('-trustd')",
            "metadata.name: names that end in -konnectivity or -trustd are those of another tenant's \
             routes; choose a name with another ending",
        )
        .at_creation(),
        Rule::new(
            "",
            "!has(self.spec.certificates) || !has(self.spec.certificates.caSecretName) || \
             self.spec.certificates.caSecretName != self.metadata.name + '-ca'",
            "spec.certificates.caSecretName: <name>-ca is the Secret that Steward writes itself; put \
             your CA in a Secret of another name",
        )
        .field(".spec.certificates.caSecretName")
        .at_creation(),
        Rule::new(
            "",
            "!has(self.spec.certificates) || !has(self.spec.certificates.frontProxyCaSecretName) || \
             self.spec.certificates.frontProxyCaSecretName != \
             self.metadata.name + '-front-proxy-ca-certificate'",
            "spec.certificates.frontProxyCaSecretName: <name>-front-proxy-ca-certificate is the \
             Secret that Steward writes itself; put your CA in a Secret of another name",
        )
        .field(".spec.certificates.frontProxyCaSecretName")
        .at_creation(),
    ]
}

fn datastore() -> Vec<Rule> {
    vec![
        Rule::new(
            "spec",
            "!has(oldSelf.dataStore) || has(self.dataStore)",
            "dataStore: unsetting the dataStore is not supported; keep the value the tenant was \
             created with",
        )
        .field(".dataStore")
        .required(),
        // A tenant whose data is nowhere yet may still be sent elsewhere: a name may have been misspelt.
        Rule::new(
            "",
            "!has(oldSelf.status) || !has(oldSelf.status.storage) || \
             !has(oldSelf.status.storage.dataStoreName) || !has(self.spec.dataStore) || \
             self.spec.dataStore == oldSelf.status.storage.dataStoreName || \
             (has(oldSelf.spec.dataStore) && self.spec.dataStore == oldSelf.spec.dataStore)",
            "spec.dataStore: the tenant's data is in the DataStore that status.storage.dataStoreName \
             names, and this version doesn't move data; keep that one",
        )
        .field(".spec.dataStore")
        .forbidden(),
        Rule::new(
            "spec",
            unchanged("dataStoreSchema"),
            "dataStoreSchema: changing the dataStoreSchema is not supported, because the data would \
             stay under the old name; keep the value the tenant was created with",
        )
        .field(".dataStoreSchema")
        .forbidden(),
        Rule::new(
            "spec",
            unchanged("dataStoreUsername"),
            "dataStoreUsername: changing the dataStoreUsername is not supported; keep the value the \
             tenant was created with",
        )
        .field(".dataStoreUsername")
        .forbidden(),
        Rule::new(
            "spec",
            unique("dataStoreOverrides", "x.resource"),
            "dataStoreOverrides: duplicate resource override; name each resource once",
        )
        .field(".dataStoreOverrides"),
        Rule::new(
            "spec.dataStoreOverrides[]",
            "self.resource.matches('^[a-z0-9.-]*/[a-z0-9]+$')",
            "dataStoreOverrides[].resource: not a group and a resource; write /events for a core \
             resource or apps/deployments for one of a group",
        )
        .field(".resource"),
    ]
}

/// Names that a datastore has for itself: with `root` a tenant would be etcd's administrator.
fn datastore_names() -> Vec<Rule> {
    let free = |field: &'static str| {
        Rule::new(
            "spec",
            format!(
                "!has(self.{field}) || !(self.{field}.lowerAscii() in {})",
                cel_list(DATASTORE_NAMES)
            ),
            format!(
                "{field}: this name is the datastore's own; leave the field out, or write a name \
                 that only this tenant uses"
            ),
        )
        .at_creation()
        .forbidden()
    };
    vec![
        free("dataStoreUsername").field(".dataStoreUsername"),
        free("dataStoreSchema").field(".dataStoreSchema"),
    ]
}

fn certificates() -> Vec<Rule> {
    const AT: &str = "spec.certificates";
    vec![
        Rule::new(
            "spec",
            "(has(self.certificates) && has(self.certificates.caSecretName) ? \
             self.certificates.caSecretName : '') == (has(oldSelf.certificates) && \
             has(oldSelf.certificates.caSecretName) ? oldSelf.certificates.caSecretName : '')",
            "certificates.caSecretName: can't be changed, because every node and client trusts the \
             CA; keep the value the tenant was created with",
        )
        .field(".certificates.caSecretName")
        .forbidden(),
        Rule::new(
            "spec",
            "(has(self.certificates) && has(self.certificates.frontProxyCaSecretName) ? \
             self.certificates.frontProxyCaSecretName : '') == (has(oldSelf.certificates) && \
             has(oldSelf.certificates.frontProxyCaSecretName) ? \
             oldSelf.certificates.frontProxyCaSecretName : '')",
            "certificates.frontProxyCaSecretName: can't be changed; keep the value the tenant was \
             created with",
        )
        .field(".certificates.frontProxyCaSecretName")
        .forbidden(),
        Rule::new(
            AT,
            "!has(self.validity) || duration(self.validity) >= duration('10m')",
            "certificates.validity: too short to be renewed in time; write at least 10m",
        )
        .field(".validity"),
        Rule::new(
            AT,
            "!has(self.caValidity) || duration(self.caValidity) >= \
             duration(has(self.validity) ? self.validity : '8760h')",
            "certificates.caValidity: a CA must outlive what it signs; write at least the value of \
             validity (8760h without one)",
        )
        .field(".caValidity"),
        Rule::new(
            AT,
            "!has(self.renewBefore) || (duration(self.renewBefore) > duration('0s') && \
             duration(self.renewBefore) + duration(self.renewBefore) <= \
             duration(has(self.validity) ? self.validity : '8760h'))",
            "certificates.renewBefore: must be longer than 0s and at most half of validity (8760h \
             without one)",
        )
        .field(".renewBefore"),
    ]
}
