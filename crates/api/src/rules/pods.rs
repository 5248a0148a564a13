//! Rules of the Deployment and its Service: nothing may collide with what Steward puts there.

use super::Rule;
use super::expressions::{FLAG, NAME, all, unique};
use crate::reserved::{CONTAINERS, MOUNT_PATHS, SERVICE_PORTS, VOLUMES, cel_list};

const DEPLOYMENT: &str = "spec.controlPlane.deployment";
const SERVICE: &str = "spec.controlPlane.service";

pub(super) fn rules() -> Vec<Rule> {
    [containers(), volumes(), mounts(), arguments(), ports()].concat()
}

fn containers() -> Vec<Rule> {
    let ours = cel_list(CONTAINERS);
    let mut rules = Vec::new();
    for (list, field) in [
        ("additionalContainers", ".additionalContainers"),
        ("additionalInitContainers", ".additionalInitContainers"),
    ] {
        rules.push(
            Rule::new(
                DEPLOYMENT,
                all(list, "x", &format!("!(x.name in {ours})")),
                format!(
                    "deployment.{list}: a container has the name of one of Steward's own \
                     (kube-apiserver, kube-controller-manager, kube-scheduler, kine, \
                     konnectivity-server, steward-gate); give it another name"
                ),
            )
            .field(field),
        );
        rules.push(
            Rule::new(
                DEPLOYMENT,
                unique(list, "x.name"),
                format!("deployment.{list}: two containers have the same name; rename one"),
            )
            .field(field),
        );
        rules.push(
            Rule::new(
                DEPLOYMENT,
                all(
                    list,
                    "c",
                    "!has(c.volumeMounts) || c.volumeMounts.all(m, \
                     c.volumeMounts.exists_one(n, n.mountPath == m.mountPath))",
                ),
                format!(
                    "deployment.{list}: a container has two mounts on one path; give each \
                     volumeMounts[].mountPath once"
                ),
            )
            .field(field),
        );
    }
    rules.push(
        Rule::new(
            DEPLOYMENT,
            "!has(self.additionalContainers) || !has(self.additionalInitContainers) || \
             self.additionalContainers.all(x, \
             !self.additionalInitContainers.exists(y, y.name == x.name))",
            "deployment.additionalInitContainers: an init container has the name of an additional \
             container; rename one",
        )
        .field(".additionalInitContainers"),
    );
    rules
}

fn volumes() -> Vec<Rule> {
    vec![
        Rule::new(
            DEPLOYMENT,
            all(
                "additionalVolumes",
                "x",
                &format!("!(x.name in {})", cel_list(VOLUMES)),
            ),
            "deployment.additionalVolumes: a volume has the name of one of Steward's own; give it \
             another name, for example with a prefix of yours",
        )
        .field(".additionalVolumes"),
        Rule::new(
            DEPLOYMENT,
            unique("additionalVolumes", "x.name"),
            "deployment.additionalVolumes: two volumes have the same name; rename one",
        )
        .field(".additionalVolumes"),
    ]
}

fn mounts() -> Vec<Rule> {
    const AT: &str = "spec.controlPlane.deployment.additionalVolumeMounts";
    let ours = cel_list(MOUNT_PATHS);
    let mut rules = Vec::new();
    for (list, field) in [
        ("apiServer", ".apiServer"),
        ("controllerManager", ".controllerManager"),
        ("scheduler", ".scheduler"),
    ] {
        rules.push(
            Rule::new(
                AT,
                unique(list, "x.mountPath"),
                format!(
                    "additionalVolumeMounts.{list}: two mounts on one path; give each mountPath once"
                ),
            )
            .field(field),
        );
        rules.push(
            Rule::new(
                AT,
                all(list, "x", &format!("!(x.mountPath in {ours})")),
                format!(
                    "additionalVolumeMounts.{list}: a mountPath is one of Steward's own mounts; mount \
                     it elsewhere, for example under /etc/kubernetes/extra"
                ),
            )
            .field(field),
        );
    }
    rules
}

fn arguments() -> Vec<Rule> {
    const AT: &str = "spec.controlPlane.deployment.extraArgs";
    [
        ("apiServer", ".apiServer"),
        ("controllerManager", ".controllerManager"),
        ("scheduler", ".scheduler"),
        ("kine", ".kine"),
    ]
    .map(|(list, field)| {
        Rule::new(
            AT,
            all(list, "x", FLAG),
            format!("extraArgs.{list}: each must be a flag with its value; write --flag=value"),
        )
        .field(field)
    })
    .to_vec()
}

fn ports() -> Vec<Rule> {
    vec![
        Rule::new(
            SERVICE,
            all("additionalPorts", "x", &format!("!(x.name in {})", cel_list(SERVICE_PORTS))),
            "service.additionalPorts: a port has the name of one of Steward's own (kube-apiserver, \
             konnectivity-server); give it another name",
        )
        .field(".additionalPorts"),
        Rule::new(
            SERVICE,
            all("additionalPorts", "x", &format!("x.name.matches('^{NAME}$')")),
            "service.additionalPorts: a port's name must be lower-case letters, digits and '-'; write \
             one such as metrics",
        )
        .field(".additionalPorts"),
        Rule::new(
            SERVICE,
            unique("additionalPorts", "x.name"),
            "service.additionalPorts: two ports have the same name; rename one",
        )
        .field(".additionalPorts"),
        Rule::new(
            SERVICE,
            unique("additionalPorts", "[string(x.port), x.protocol]"),
            "service.additionalPorts: two ports have the same number and protocol; change one",
        )
        .field(".additionalPorts"),
        Rule::new(
            "spec",
            "!has(self.controlPlane.service.additionalPorts) || \
             self.controlPlane.service.additionalPorts.all(x, x.protocol != 'TCP' || \
             (x.port != self.networkProfile.port && (!has(self.addons.konnectivity) || \
             x.port != self.addons.konnectivity.server.port)))",
            "controlPlane.service.additionalPorts: a port has the number of networkProfile.port or of \
             addons.konnectivity.server.port, which are on the same Service; choose another number",
        )
        .field(".controlPlane.service.additionalPorts"),
        Rule::new(
            "spec",
            "!has(self.addons.konnectivity) || \
             self.addons.konnectivity.server.port != self.networkProfile.port",
            "addons.konnectivity.server.port: the same as networkProfile.port, and both are on one \
             Service; choose another number, 8132 by default",
        )
        .field(".addons.konnectivity.server.port"),
    ]
}
