//! A node that starts with nothing: a cloud controller that has not seen it, no CNI, no
//! CoreDNS, and then no name server either. Each comes when it comes; nothing waits for
//! something later.

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use steward_lab::dns::Mood;
use steward_lab::{Host, Nudge};

use crate::{Resident, Stage, wait_for};

const CNI: &str = "/etc/cni/net.d/10-lab.conflist";

/// What a cloud controller does first: it reaches the API server as any pod does, and says
/// that the node is initialized. A Go client with the configuration a pod is given.
const CLOUD_CONTROLLER: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: cloud-controller }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: 'system:controller:node-controller' }
subjects: [ { kind: ServiceAccount, name: default, namespace: kube-system } ]
---
apiVersion: v1
kind: Pod
metadata: { name: cloud-controller, namespace: kube-system }
spec:
  hostNetwork: true
  restartPolicy: OnFailure
  tolerations: [ { operator: Exists } ]
  containers:
  - name: controller
    image: steward.lab/toolbox:1
    imagePullPolicy: IfNotPresent
    command: [ sh, -c, 'exec -a kubectl /machine$KUBECTL taint node NODE node.cloudprovider.kubernetes.io/uninitialized-' ]
    env: [ { name: KUBECTL, value: PROGRAM } ]
    volumeMounts: [ { name: machine, mountPath: /machine, readOnly: true } ]
  volumes: [ { name: machine, hostPath: { path: / } } ]
";

/// Of all of them at once, each step of one beside that of the others. Their tenants have no CoreDNS yet.
pub async fn nodes_come_up_from_nothing(stage: &Stage, residents: &[Resident]) -> Result<()> {
    let mut networks = Vec::new();
    for resident in residents {
        let file = resident.worker(stage)?.path(CNI);
        networks.push((std::fs::read(&file).context("the lab's CNI")?, file.clone()));
        std::fs::remove_file(file)?;
    }
    try_join_all(residents.iter().map(|one| join_under_a_cloud(stage, one))).await?;
    let waiting = residents
        .iter()
        .map(the_node_waits_for_its_cloud_and_its_network);
    try_join_all(waiting).await?;
    everyone_answers(stage, residents).await?;
    without_a_name_server_too(stage, residents).await?;
    let clouds = residents
        .iter()
        .map(|one| the_cloud_controller_gets_through(stage, one));
    try_join_all(clouds).await?;

    // containerd looks again when a file is written, not when one appears.
    for (network, file) in networks {
        std::fs::write(file, network)?;
    }
    for resident in residents {
        resident.tenant.node_ready(&resident.node()).await?;
    }
    try_join_all(residents.iter().map(|one| core_dns_comes_last(stage, one))).await?;
    Ok(())
}

/// `kubeadm join` with the one flag that nodes of a cloud have.
async fn join_under_a_cloud(stage: &Stage, resident: &Resident) -> Result<()> {
    let command = resident.tenant.join_command().await?;
    let words: Vec<&str> = command.split_whitespace().collect();
    let [_, _, endpoint, _, token, _, hash] = words[..] else {
        anyhow::bail!("not a join command as known: {command}");
    };
    ensure!(endpoint == format!("{}:443", resident.host), "{endpoint}");
    let file = stage.folder().join(format!("{}.join", resident.host));
    let config = format!(
        "apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken: {{ apiServerEndpoint: '{endpoint}', token: '{token}', caCertHashes: [ '{hash}' ] }}
nodeRegistration:
  kubeletExtraArgs: [ {{ name: cloud-provider, value: external }} ]
  ignorePreflightErrors: [ all ]
"
    );
    std::fs::write(&file, config)?;
    let file = file.display().to_string();
    let worker = resident.worker(stage)?;
    worker.run(&["kubeadm", "join", "--config", &file]).await?;
    Ok(())
}

async fn the_node_waits_for_its_cloud_and_its_network(resident: &Resident) -> Result<()> {
    let (tenant, node) = (&resident.tenant, resident.node());
    let taints = ["get", "node", &node, "-o", "jsonpath={.spec.taints}"];
    let found = tenant.kubectl(&taints).await?;
    ensure!(
        found.contains("node.cloudprovider.kubernetes.io/uninitialized"),
        "the kubelet has no external cloud provider: {found}"
    );
    let label = ["-n", "kube-system", "-l", "app=steward-tcp-proxy"];
    wait_for("the node proxy to run", 180, async || {
        let mut words = vec!["get", "pods", "-o", "jsonpath={.items[*].status.phase}"];
        words.extend(label);
        let phase = tenant.kubectl(&words).await?;
        ensure!(phase == "Running", "phase {phase:?}");
        Ok(())
    })
    .await?;
    let ready = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    let ready = tenant.kubectl(&["get", "node", &node, "-o", ready]).await?;
    ensure!(ready == "False", "the node has a network already: {ready}");
    Ok(())
}

/// The fixed address on the node leads to the API server: through front door and gate.
async fn the_node_answers_for_the_api_server(worker: &Host) -> Result<()> {
    let url = "https://240.0.0.1:6443/version";
    wait_for("the API server at the fixed address", 120, async || {
        let words = ["curl", "-ksS", "--max-time", "10", url];
        let answer = worker.run(&words).await?;
        ensure!(answer.contains("v1.36.3"), "{answer}");
        Ok(())
    })
    .await
}

async fn everyone_answers(stage: &Stage, residents: &[Resident]) -> Result<()> {
    for resident in residents {
        the_node_answers_for_the_api_server(&resident.worker(stage)?).await?;
    }
    Ok(())
}

/// Its name server gone and itself killed, the proxy comes back: it knows the addresses.
async fn without_a_name_server_too(stage: &Stage, residents: &[Resident]) -> Result<()> {
    stage.lab.dns_mood(Mood::Fails)?;
    let outcome = with_the_proxies_killed(stage, residents).await;
    stage.lab.dns_mood(Mood::Answers)?;
    outcome
}

async fn with_the_proxies_killed(stage: &Stage, residents: &[Resident]) -> Result<()> {
    for resident in residents {
        let worker = resident.worker(stage)?;
        let killed = worker.nudge_all("steward-tcp-proxy", Nudge::Kill);
        ensure!(killed > 0, "no node proxy runs on {}", worker.id());
        let lookup = worker.exec(&["getent", "hosts", &resident.host]).await?;
        ensure!(!lookup.status.success(), "the name server still answers");
    }
    everyone_answers(stage, residents).await
}

async fn the_cloud_controller_gets_through(stage: &Stage, resident: &Resident) -> Result<()> {
    let program = kubectl_on(&resident.worker(stage)?).await?;
    let (tenant, node) = (&resident.tenant, resident.node());
    let controller = CLOUD_CONTROLLER
        .replace("PROGRAM", &program)
        .replace("NODE", &node);
    tenant.apply(&controller).await?;
    wait_for(
        "the cloud controller to initialize the node",
        180,
        async || {
            let words = ["get", "node", &node, "-o", "jsonpath={.spec.taints}"];
            let taints = tenant.kubectl(&words).await?;
            ensure!(!taints.contains("uninitialized"), "{taints}");
            Ok(())
        },
    )
    .await
}

/// Where the real kubectl lies on a host.
pub(crate) async fn kubectl_on(worker: &Host) -> Result<String> {
    let path = worker
        .script("readlink -f \"$(command -v kubectl)\"")
        .await?;
    Ok(path.trim().to_owned())
}

async fn core_dns_comes_last(stage: &Stage, resident: &Resident) -> Result<()> {
    let tenant = &resident.tenant;
    let patch = r#"{"spec":{"addons":{"coreDNS":{}}}}"#;
    stage
        .patch(tenant.namespace(), tenant.name(), patch)
        .await?;
    wait_for("CoreDNS to be ready", 180, async || {
        let mut words = vec!["get", "deployment", "coredns", "-n", "kube-system"];
        words.extend(["-o", "jsonpath={.status.readyReplicas}"]);
        let ready = tenant.kubectl(&words).await?;
        ensure!(ready.parse::<u32>().is_ok_and(|n| n > 0), "{ready:?} ready");
        Ok(())
    })
    .await
}
