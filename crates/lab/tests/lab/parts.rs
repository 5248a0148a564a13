//! Pods, Services, names, load balancers, Helm and kubeadm are the real ones.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use kube::Api;
use steward_lab::poll;

use crate::shared::{PATIENCE, apply, kubectl, lab, lab_alone, until_says, web};

#[tokio::test]
async fn a_service_answers_by_name_from_another_pod_and_logs_and_exec_work() {
    let lab = lab().await;
    apply(&lab.mgmt(), &web("named", "ClusterIP"))
        .await
        .unwrap();
    lab.cluster()
        .unwrap()
        .wait_deployment("default", "named", PATIENCE)
        .await
        .unwrap();
    let ask = [
        "kubectl",
        "exec",
        "deploy/named",
        "--",
        "curl",
        "-sS",
        "-m5",
        "http://named.default.svc",
    ];
    until_says(&lab, &lab.mgmt(), &ask, "hello from named").await;
    let logs = kubectl(&lab, "logs deploy/named").await.unwrap();
    assert!(logs.contains("started"), "{logs}");
    let inside = kubectl(&lab, "exec deploy/named -- cat /etc/hostname")
        .await
        .unwrap();
    assert!(inside.starts_with("named-"), "{inside}");
}

#[tokio::test]
async fn services_outlive_the_kube_proxy_that_made_them() {
    let lab = lab_alone().await;
    apply(&lab.mgmt(), &web("lasting", "ClusterIP"))
        .await
        .unwrap();
    let cluster = lab.cluster().unwrap();
    cluster
        .wait_deployment("default", "lasting", PATIENCE)
        .await
        .unwrap();
    let rules = ["nft", "list", "map", "ip", "kube-proxy", "service-ips"];
    let before = until_says(&lab, &lab.mgmt(), &rules, "default/lasting").await;
    kubectl(&lab, "delete pods -n kube-system -l k8s-app=kube-proxy")
        .await
        .unwrap();
    // It is healthy once it has written its rules.
    let healthy = ["curl", "-sSf", "-m5", "http://127.0.0.1:10256/healthz"];
    until_says(&lab, &lab.mgmt(), &healthy, "lastUpdated").await;
    let after = lab.mgmt().run(&rules).await.unwrap();
    let lines = |text: &str| {
        let mut all: Vec<String> = text.split(',').map(|e| e.trim().to_owned()).collect();
        all.sort();
        all
    };
    assert_eq!(lines(&before), lines(&after));
}

#[tokio::test]
async fn a_load_balancer_answers_from_every_host_and_gives_its_address_back() {
    let lab = lab().await;
    apply(&lab.mgmt(), &web("balanced", "LoadBalancer"))
        .await
        .unwrap();
    let services =
        Api::<Service>::namespaced(lab.cluster().unwrap().client().await.unwrap(), "default");
    let address = lab.wait_for("an address", PATIENCE, async || {
        let service = services.get("balanced").await.map_err(|e| e.to_string())?;
        let ingress = service
            .status
            .and_then(|s| s.load_balancer?.ingress)
            .unwrap_or_default();
        ingress
            .first()
            .and_then(|i| i.ip.clone())
            .ok_or_else(|| "no address yet".into())
    });
    let address: Ipv4Addr = address.await.unwrap().parse().unwrap();
    assert_eq!(address.octets()[..3], [10, 40, 0]);
    let url = format!("http://{address}/");
    for host in lab.hosts() {
        until_says(
            &lab,
            &host,
            &["curl", "-sS", "-m5", &url],
            "hello from balanced",
        )
        .await;
    }
    // A class of somebody else's is not touched.
    let foreign = web("foreign", "LoadBalancer").replace(
        "type: LoadBalancer",
        "type: LoadBalancer\n  loadBalancerClass: example.com/other",
    );
    apply(&lab.mgmt(), &foreign).await.unwrap();
    kubectl(&lab, "delete service balanced").await.unwrap();
    lab.wait_for("the address to be gone", PATIENCE, async || {
        let addresses = lab.mgmt().run(&["ip", "-o", "addr", "show", "lo"]).await;
        let addresses = addresses.map_err(|e| e.chain())?;
        if addresses.contains(&address.to_string()) {
            Err(addresses)
        } else {
            Ok(())
        }
    })
    .await
    .unwrap();
    let foreign = services.get("foreign").await.unwrap();
    assert_eq!(foreign.status.and_then(|s| s.load_balancer?.ingress), None);
}

#[tokio::test]
async fn helm_installs_a_small_chart() {
    let lab = lab().await;
    let chart = tempfile::tempdir().unwrap();
    std::fs::create_dir(chart.path().join("templates")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(chart.path().join(name), text).unwrap();
    write(
        "Chart.yaml",
        "apiVersion: v2\nname: small\nversion: 0.1.0\n",
    );
    write("values.yaml", "word: none\n");
    write(
        "templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {word: {{ .Values.word }}}\n",
    );
    let chart = chart.path().to_str().unwrap();
    let words = [
        "helm",
        "install",
        "tiny",
        chart,
        "--set",
        "word=hello",
        "--wait",
    ];
    lab.mgmt().run(&words).await.unwrap();
    let word = kubectl(&lab, "get configmap tiny -o jsonpath={.data.word}")
        .await
        .unwrap();
    assert_eq!(word, "hello");
}

/// The second cluster's control plane is on worker-1; worker-2 joins it, leaves it,
/// and its kubelet follows.

#[tokio::test]
async fn a_worker_joins_a_second_cluster_with_plain_kubeadm_and_leaves_it_again() {
    let lab = lab_alone().await;
    let (first, second) = (lab.worker(1).unwrap(), lab.worker(2).unwrap());
    let cluster = lab.make_cluster(first.id()).await.unwrap();
    let command = first
        .run(&["kubeadm", "token", "create", "--print-join-command"])
        .await
        .unwrap();
    let mut words: Vec<&str> = command.split_whitespace().collect();
    words.push("--ignore-preflight-errors=all");
    second.run(&words).await.unwrap();
    cluster.wait_node(second.id(), true).await.unwrap();

    // A pod on the new node talks to the API server by its name in the cluster.
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: asks, namespace: default}
spec:
  nodeName: worker-2
  containers:
  - name: asks
    image: steward.lab/toolbox:1
    command: [sleep, infinity]
";
    apply(&first, pod).await.unwrap();
    let ask = "curl -sS -m5 --cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt \
               https://kubernetes.default.svc/version";
    let words = ["kubectl", "exec", "asks", "--", "sh", "-c", ask];
    cluster
        .wait_for("an answer from the API server", PATIENCE, async || {
            let said = first.run(&words).await.map_err(|error| error.chain())?;
            if said.contains("gitVersion") {
                Ok(())
            } else {
                Err(said)
            }
        })
        .await
        .unwrap();

    second.run(&["kubeadm", "reset", "--force"]).await.unwrap();
    poll(PATIENCE, async || {
        let units = second.units().unwrap();
        let kubelet = units
            .into_iter()
            .find(|unit| unit.name == "kubelet")
            .unwrap();
        if kubelet.pid.is_none() {
            Ok(())
        } else {
            Err(kubelet)
        }
    })
    .await
    .unwrap();
}
