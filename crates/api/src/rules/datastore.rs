//! Rules of `DataStore`.

use super::Rule;
use super::expressions::NAME;

const AT: &str = "spec";

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = [place(), managed(), etcd(), others()].concat();
    rules.extend(contents());
    rules
}

fn place() -> Vec<Rule> {
    vec![
        Rule::new(
            AT,
            "self.driver == oldSelf.driver",
            "driver: Datastore driver is immutable; make another DataStore and move tenants to it",
        )
        .field(".driver")
        .forbidden(),
        Rule::new(
            AT,
            "has(self.managed) || (has(self.endpoints) && self.endpoints.size() > 0)",
            "endpoints: missing; write host:port of each endpoint, or managed: {} to let Steward run \
             the etcd itself",
        )
        .field(".endpoints")
        .required(),
        Rule::new(
            "spec.endpoints[]",
            format!(
                "self.matches('^({NAME}|[[][0-9a-fA-F:.]+[]]):[1-9][0-9]{{0,4}}$') && \
                 int(self.substring(self.lastIndexOf(':') + 1)) <= 65535"
            ),
            "endpoints: not host:port; write etcd-0.example.com:2379, 192.0.2.10:2379 or \
             [2001:db8::10]:2379, without a scheme",
        ),
    ]
}

fn managed() -> Vec<Rule> {
    const MANAGED: &str = "spec.managed";
    vec![
        Rule::new(
            AT,
            "!has(self.managed) || self.driver == 'etcd'",
            "managed: Steward runs only etcd itself; set driver to etcd, or give endpoints of the \
             database you run",
        )
        .field(".managed"),
        Rule::new(
            AT,
            "!has(self.managed) || !((has(self.endpoints) && self.endpoints.size() > 0) || \
             has(self.basicAuth) || has(self.tlsConfig))",
            "managed: excludes endpoints, basicAuth and tlsConfig, which Steward makes itself; remove \
             them, or remove managed",
        )
        .field(".managed")
        .forbidden(),
        Rule::new(
            AT,
            "has(self.managed) == has(oldSelf.managed)",
            "managed: can't be added or removed later, because the data wouldn't move; make another \
             DataStore and move tenants to it",
        )
        .field(".managed")
        .forbidden(),
        Rule::new(
            MANAGED,
            "self.replicas in [1, 3]",
            "managed.replicas: an etcd has 1 member, or 3 to go on when one fails; write 1 or 3",
        )
        .field(".replicas"),
        Rule::new(
            MANAGED,
            "self.replicas == oldSelf.replicas",
            "managed.replicas: can't be changed later; make another DataStore and move tenants to it",
        )
        .field(".replicas")
        .forbidden(),
        Rule::new(
            MANAGED,
            "!has(self.storage) || !has(self.emptyDir)",
            "managed: storage and emptyDir exclude each other; keep storage for volumes, or emptyDir \
             for data that is lost with the pod",
        )
        .field(".emptyDir")
        .forbidden(),
        Rule::new(
            MANAGED,
            "has(self.emptyDir) == has(oldSelf.emptyDir) && \
             (has(self.storage) ? [self.storage] : []) == (has(oldSelf.storage) ? [oldSelf.storage] : [])",
            "managed.storage: can't be changed later, because the members' volumes are already made; \
             make another DataStore and move tenants to it",
        )
        .field(".storage")
        .forbidden(),
    ]
}

fn etcd() -> Vec<Rule> {
    let needs = |inner: &str, what: &str, field: &'static str, example: &str| {
        Rule::new(
            AT,
            format!("self.driver != 'etcd' || has(self.managed) || (has(self.tlsConfig) && {inner})"),
            format!(
                "{what} must have secretReference or content when driver is etcd; write {example}, or \
                 managed: {{}} instead to let Steward run the etcd"
            ),
        )
        .field(field)
        .required()
    };
    let set = |path: &str| format!("(has({path}.secretReference) || has({path}.content))");
    vec![
        needs(
            &format!(
                "has(self.tlsConfig.certificateAuthority.privateKey) && {}",
                set("self.tlsConfig.certificateAuthority.privateKey")
            ),
            "tlsConfig.certificateAuthority.privateKey",
            ".tlsConfig",
            "the Secret with the CA's key",
        ),
        needs(
            &format!(
                "has(self.tlsConfig.clientCertificate) && {}",
                set("self.tlsConfig.clientCertificate.certificate")
            ),
            "tlsConfig.clientCertificate.certificate",
            ".tlsConfig",
            "the Secret with root's client certificate",
        ),
        needs(
            &format!(
                "has(self.tlsConfig.clientCertificate) && {}",
                set("self.tlsConfig.clientCertificate.privateKey")
            ),
            "tlsConfig.clientCertificate.privateKey",
            ".tlsConfig",
            "the Secret with root's client key",
        ),
    ]
}

fn others() -> Vec<Rule> {
    vec![
        Rule::new(
            AT,
            "self.driver == 'etcd' || has(self.tlsConfig) || has(self.basicAuth)",
            "tlsConfig: When driver is not etcd, either tlsConfig or basicAuth must be provided; write \
             how Steward proves itself to the database",
        )
        .field(".tlsConfig")
        .required(),
    ]
}

/// Every piece of data must come from somewhere.
fn contents() -> Vec<Rule> {
    [
        ("spec.basicAuth.username", "basicAuth.username"),
        ("spec.basicAuth.password", "basicAuth.password"),
        ("spec.tlsConfig.certificateAuthority.certificate", "tlsConfig.certificateAuthority.certificate"),
        ("spec.tlsConfig.certificateAuthority.privateKey", "tlsConfig.certificateAuthority.privateKey"),
        ("spec.tlsConfig.clientCertificate.certificate", "tlsConfig.clientCertificate.certificate"),
        ("spec.tlsConfig.clientCertificate.privateKey", "tlsConfig.clientCertificate.privateKey"),
    ]
    .into_iter()
    .flat_map(|(at, name)| {
        [
            Rule::new(
                at,
                "has(self.content) || has(self.secretReference)",
                format!("{name}: empty; write secretReference with the Secret that holds it, or content"),
            )
            .required(),
            Rule::new(
                at,
                "!has(self.secretReference) || (has(self.secretReference.name) && \
                 self.secretReference.name != '' && has(self.secretReference.__namespace__) && \
                 self.secretReference.__namespace__ != '')",
                format!(
                    "{name}.secretReference: a DataStore belongs to no namespace, so name both; write \
                     name and namespace of the Secret"
                ),
            )
            .field(".secretReference")
            .required(),
        ]
    })
    .collect()
}
