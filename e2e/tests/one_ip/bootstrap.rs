//! A node that starts with nothing: a cloud controller that has not seen it, no CNI, no
//! CoreDNS, and then no name server either. Each comes when it comes; nothing waits for
//! something later.

use anyhow::{Context, Result, ensure};
use steward_e2e::{Stage, Tenant, wait_for};
use steward_lab::dns::Mood;
use steward_lab::{Host, Nudge};

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
    command: [ sh, -c, 'exec -a kubectl /machine$KUBECTL taint node worker-1 node.cloudprovider.kubernetes.io/uninitialized-' ]
    env: [ { name: KUBECTL, value: PROGRAM } ]
    volumeMounts: [ { name: machine, mountPath: /machine, readOnly: true } ]
  volumes: [ { name: machine, hostPath: { path: / } } ]
";

pub(crate) async fn a_node_comes_up_from_nothing(stage: &Stage, tenant: &Tenant) -> Result<()> {
    let worker = stage.lab.worker(1)?;
    let cni = std::fs::read_to_string(worker.path(CNI)).context("the lab's CNI")?;
    std::fs::remove_file(worker.path(CNI))?;

    join_under_a_cloud(stage, tenant, &worker).await?;
    the_node_waits_for_its_cloud_and_its_network(tenant).await?;
    the_node_answers_for_the_api_server(&worker).await?;
    without_a_name_server_too(stage, &worker).await?;
    the_cloud_controller_gets_through(tenant, &worker).await?;

    // containerd looks again when a file is written, not when one appears.
    std::fs::write(worker.path(CNI), cni)?;
    tenant.node_ready("worker-1").await?;
    core_dns_comes_last(stage, tenant).await
}

/// `kubeadm join` with the one flag that nodes of a cloud have.
async fn join_under_a_cloud(stage: &Stage, tenant: &Tenant, worker: &Host) -> Result<()> {
    let command = tenant.join_command().await?;
    let words: Vec<&str> = command.split_whitespace().collect();
    let [_, _, endpoint, _, token, _, hash] = words[..] else {
        anyhow::bail!("not a join command as known: {command}");
    };
    ensure!(endpoint == "t1.k8s.example.com:443", "{endpoint}");
    let file = stage.folder().join("join.yaml");
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
    worker.run(&["kubeadm", "join", "--config", &file]).await?;
    Ok(())
}

async fn the_node_waits_for_its_cloud_and_its_network(tenant: &Tenant) -> Result<()> {
    let taints = ["get", "node", "worker-1", "-o", "jsonpath={.spec.taints}"];
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
    let ready = tenant
        .kubectl(&["get", "node", "worker-1", "-o", ready])
        .await?;
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

/// Its name server gone and itself killed, the proxy comes back: it knows the addresses.
async fn without_a_name_server_too(stage: &Stage, worker: &Host) -> Result<()> {
    stage.lab.dns_mood(Mood::Fails)?;
    let killed = worker.nudge_all("steward-tcp-proxy", Nudge::Kill);
    ensure!(killed > 0, "no node proxy runs on {}", worker.id());
    let outcome = the_node_answers_for_the_api_server(worker).await;
    let lookup = worker
        .exec(&["getent", "hosts", "t1.k8s.example.com"])
        .await?;
    stage.lab.dns_mood(Mood::Answers)?;
    ensure!(!lookup.status.success(), "the name server still answers");
    outcome
}

async fn the_cloud_controller_gets_through(tenant: &Tenant, worker: &Host) -> Result<()> {
    let program = kubectl_on(worker).await?;
    tenant
        .apply(&CLOUD_CONTROLLER.replace("PROGRAM", &program))
        .await?;
    wait_for(
        "the cloud controller to initialize the node",
        180,
        async || {
            let words = ["get", "node", "worker-1", "-o", "jsonpath={.spec.taints}"];
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

async fn core_dns_comes_last(stage: &Stage, tenant: &Tenant) -> Result<()> {
    let patch = r#"{"spec":{"addons":{"coreDNS":{}}}}"#;
    let target = [
        "patch",
        "tcp",
        "t1",
        "-n",
        "tenants",
        "--type=merge",
        "-p",
        patch,
    ];
    stage.kubectl(&target).await?;
    wait_for("CoreDNS to be ready", 180, async || {
        let ready = "jsonpath={.status.readyReplicas}";
        let words = [
            "get",
            "deployment",
            "coredns",
            "-n",
            "kube-system",
            "-o",
            ready,
        ];
        let ready = tenant.kubectl(&words).await?;
        ensure!(ready.parse::<u32>().is_ok_and(|n| n > 0), "{ready:?} ready");
        Ok(())
    })
    .await
}
