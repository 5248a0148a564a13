//! Reasons of conditions, each with its meaning and what a person does about it.
//!
//! `docs/api.md` prints this table, so that a reason without advice can't exist.

macro_rules! reasons {
    ($($name:ident: $meaning:literal => $advice:literal,)+) => {
        /// Why a condition is as it is, for programs; the message says it for people.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub enum Reason {
            $(#[doc = $meaning] $name,)+
        }

        impl Reason {
            /// Every reason, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// As it is written in the status.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// What it says.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }

            /// What a person does about it.
            pub fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)+ }
            }
        }
    };
}

reasons! {
    Ready: "Everything of this step is as it should be."
        => "Nothing.",
    Reconciled: "The last change is complete."
        => "Nothing.",
    Reconciling: "A change is on its way."
        => "Wait; the message names the step.",
    Provisioning: "The tenant is being made for the first time."
        => "Wait; the other conditions name the step.",
    Upgrading: "Pods are being replaced by those of another version."
        => "Wait; `kubectl get pods -l steward.butlerlabs.dev/name=NAME` shows them.",
    Migrating: "The tenant's data is moving to another datastore."
        => "Wait.",
    Moving: "The new way to reach the tenant is being checked before the old one goes."
        => "Wait; `EndpointReady` says what is missing on the new way.",
    Sleeping: "The tenant is scaled to zero."
        => "Set `controlPlane.deployment.replicas` above 0 to wake it.",
    Paused: "The annotation `steward.butlerlabs.dev/paused` is set."
        => "Remove the annotation to let Steward go on.",
    Deleting: "The tenant is being removed."
        => "Wait; the message names what is left.",
    NotRequested: "The spec doesn't ask for this step."
        => "Nothing.",
    Invalid: "The spec can't be followed."
        => "Correct the field that the message names.",
    HostnameTaken: "Another tenant claimed the same hostname first."
        => "Choose another hostname, or remove the tenant that the message names.",
    HostnameMissing: "Neither a hostname nor a domain is given."
        => "Set `ingress.hostname` or `ingress.domain` (`gateway.…` for a Gateway), or the annotation `steward.butlerlabs.dev/ingress.domain`.",
    AddressConflict: "A fixed address is inside a range that is used otherwise."
        => "Set `addons.tcpProxy.address` to an address outside the pod, Service and node ranges.",
    EndpointKept: "The endpoint before the last move still works, because kubelets or proxies inside the tenant may use it."
        => "Do what the message says.",
    ArgumentIgnored: "An extra argument sets a flag that Steward must set itself."
        => "Remove the argument that the message names.",
    NotSupported: "The spec asks for something that this version doesn't provide."
        => "Remove the field that the message names.",
    DatastoreMissing: "There is no `DataStore` of that name."
        => "Make it, or set `dataStore` to one that exists: `kubectl get datastores`.",
    DatastoreNotReady: "The `DataStore` isn't ready."
        => "Look at its own conditions: `kubectl describe datastore NAME`.",
    DatastoreUnreachable: "No endpoint of the datastore answers."
        => "Check its endpoints, and the network and firewall between them and the operator.",
    DatastoreDenied: "The datastore refuses Steward's credentials."
        => "Check that the client certificate is root's and signed by the CA that etcd trusts, or the user and password.",
    DatastoreFull: "The datastore accepts no writes because it has reached its size limit."
        => "Raise its limit or remove data, then clear its alarm.",
    DatastoreNameTaken: "The user or the schema in the datastore is another tenant's, or the datastore's own."
        => "Make the tenant again with another `dataStoreUsername` or `dataStoreSchema`, or without them; who runs the datastore can tell whose it is.",
    DatastoreVulnerable: "The datastore runs a version of etcd that doesn't keep tenants apart, and already has a tenant."
        => "Upgrade that etcd, use another `DataStore`, or let who runs it set the annotation that the message names.",
    DatastoreInUse: "Tenants use the `DataStore`."
        => "Remove or move the tenants that the message names.",
    DatastoreAbandoned: "The tenant was removed without cleaning its datastore, as its annotation asked."
        => "Remove the keys and the user that the message names, if the datastore comes back.",
    MembersNotReady: "Members of the etcd that Steward runs aren't ready."
        => "`kubectl get pods -n steward-system` shows which, and their events why.",
    SecretMissing: "A Secret that the spec names isn't there, or lacks a key."
        => "Make the Secret and key that the message names.",
    SecretInvalid: "A Secret holds something else than it should."
        => "Correct the Secret that the message names.",
    CertificateExpiring: "A certificate expires soon and couldn't be renewed."
        => "The message names the certificate and why.",
    CertificateAuthorityInvalid: "The CA that the user brought can't be used."
        => "Put a CA certificate and its key in the Secret that the message names.",
    WaitingForPods: "Pods of the control plane aren't ready yet."
        => "Wait; if it stays, `kubectl describe pod` of the pod that the message names.",
    ImageUnavailable: "An image can't be pulled."
        => "Check `kubernetes.version`, `registrySettings` and the registry's credentials.",
    ContainerCrashing: "A container of the control plane ends again and again."
        => "`kubectl logs --previous` of the container that the message names; extra arguments are the usual cause.",
    QuotaExceeded: "A quota or an admission policy of the namespace stops the pods."
        => "Raise the quota, or change the policy, that the message names.",
    Unschedulable: "No node takes the pods."
        => "Check resources, affinity and taints; the message has the scheduler's words.",
    NamespaceTerminating: "The tenant's namespace is being deleted."
        => "Nothing can be made there any more; make the tenant in another namespace.",
    WaitingForAddress: "The Service has no address yet."
        => "Check that a load balancer implementation runs and has free addresses.",
    WaitingForRoute: "The front door hasn't taken up the route yet."
        => "Wait; if it stays, look at the status of the object that the message names.",
    RouteNotAccepted: "The Gateway doesn't accept the route."
        => "The message has the Gateway's own words; check listeners, allowed namespaces and hostnames.",
    ControllerMissing: "The front door's kind or class isn't installed."
        => "Install what the message names, or choose another `controllerType`.",
    RouteNotDeployed: "`deploy: false`: the routes are yours to make."
        => "Route what the message lists.",
    HostnameNotResolved: "The hostname isn't in DNS."
        => "Make a record for it that leads to the front door; a wildcard record serves all tenants.",
    HostnameElsewhere: "The hostname leads to another address than the front door's."
        => "Correct the DNS record that the message names.",
    TlsTerminated: "The front door opens TLS itself and shows its own certificate."
        => "Turn on TLS passthrough in the front door; the message says how for the known ones.",
    EndpointUnreachable: "The API server isn't reached under its endpoint."
        => "The message names the address and what happened; `steward doctor` finds out more.",
    TenantUnreachable: "The operator doesn't reach the tenant's API server."
        => "Look at `ControlPlaneReady` first, then at network policies between the operator and the tenant's Service.",
    AddonsIncomplete: "Something inside the tenant cluster couldn't be written."
        => "The message names the object and the answer.",
    NodesTooOld: "Nodes run kubelets that the version asked for doesn't support."
        => "Upgrade the nodes that the message names first.",
    WriteLimited: "`writePermissions` makes the tenant refuse some writes."
        => "Nothing, or remove `writePermissions`.",
    EgressKept: "The control plane was made before its outgoing connections were confined, and they still go where they went."
        => "Do what the message says, then set `controlPlane.egress`.",
    EgressClosed: "The control plane is told to call addresses that it can't reach."
        => "Name them in `controlPlane.egress.allow`, which needs a permission, or ask who runs this cluster.",
    Conflict: "Another writer keeps changing an object of ours."
        => "Find the writer that the message names and stop it.",
    Forbidden: "The operator lacks a permission."
        => "Grant what the message names, or install the chart's ClusterRole of this version.",
    Throttled: "The API server asks us to wait."
        => "Wait.",
    ObjectNotOurs: "An object of somebody else has the name that one of ours needs. It is left as it is."
        => "Remove or rename the object that the message names, give the tenant another name, or hand the object over with the annotation `steward.butlerlabs.dev/adopt`.",
    KeyLost: "An authority or token key that can't be made again is gone, damaged or another one. Pods go on with what they have; nothing is written."
        => "Put back the Secret that the message names. If it is lost for good, the annotation `steward.butlerlabs.dev/replace-lost-key` makes a new one: docs/tenant.md, \"A lost key\".",
    TooMuchInside: "There is more inside the tenant than the operator reads: objects with Steward's own label, nodes, or an answer of its API server that is too large."
        => "Remove what the message names; nothing else of the tenant is stopped by it.",
    Error: "Something failed that has no reason of its own."
        => "The message has the details; the operator's log more.",
}
