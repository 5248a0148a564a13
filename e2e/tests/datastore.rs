//! Many tenants on one datastore that Steward runs: three members with volumes, of which one dies; who may read
//! what; space that is given back; and that nothing remains of tenants that are gone.

use anyhow::{Context, Result, ensure};
use steward_e2e::{Etcd, Load, Stage, Tenant, wait_for};

const TENANTS: usize = 10;
const AWAKE: usize = 3;

/// No provisioner here: volumes made by hand are as real.
const VOLUMES: &str = "for member in 0 1 2; do
  install -d -o 65532 -g 65532 -m 700 /run/members/$member
  kubectl apply -f - <<MANIFEST
apiVersion: v1
kind: PersistentVolume
metadata: { name: member-$member }
spec:
  storageClassName: by-hand
  capacity: { storage: 10Gi }
  accessModes: [ ReadWriteOnce ]
  hostPath: { path: /run/members/$member, type: Directory }
MANIFEST
done
kubectl apply -f - <<MANIFEST
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: by-hand }
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
MANIFEST
";

const VALUES: [&str; 4] = [
    "defaultDataStore.replicas=3",
    "defaultDataStore.emptyDir.enabled=false",
    "defaultDataStore.storage.storageClassName=by-hand",
    "extraArgs[0]=--defragment-above=16Mi",
];

#[tokio::test(flavor = "multi_thread")]
async fn ten_tenants_share_three_members_and_nothing_else() -> Result<()> {
    let stage = Stage::bare("store", 0).await?;
    stage.lab.mgmt().script(VOLUMES).await?;
    stage.install(&VALUES).await?;
    stage.apply(&manifests(0..1)).await?;
    tenant(&stage, 0).await?;
    eprintln!("{}", where_the_time_went(&stage).await?);
    stage.apply(&manifests(1..TENANTS)).await?;
    let mut tenants = Vec::new();
    for number in 0..TENANTS {
        tenants.push(tenant(&stage, number).await?);
    }
    eprintln!("{TENANTS} tenants are available");
    let etcd = Etcd::new(&stage).await?;
    a_budget_protects_the_members(&stage).await?;
    credentials_open_nobody_else_s_keys(&stage, &etcd).await?;
    // The rest needs a few that work. The others are asleep with all their data.
    for sleeper in tenants.split_off(AWAKE) {
        let words = [
            "scale",
            "tcp",
            sleeper.name(),
            "-n",
            "tenants",
            "--replicas=0",
        ];
        stage.kubectl(&words).await?;
    }
    tenants_go_on_when_a_member_dies(&stage, &tenants).await?;
    eprintln!("a member died and came back");
    space_is_given_back_member_by_member(&stage, &etcd).await?;
    nothing_is_left(&stage, &etcd).await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes under load, on a machine of its own: make soak"]
async fn members_of_an_earlier_version_get_their_own_authority_under_load() -> Result<()> {
    let stage = Stage::bare("peers", 0).await?;
    stage.lab.mgmt().script(VOLUMES).await?;
    stage.install(&VALUES).await?;
    stage.apply(&manifests(0..1)).await?;
    let tenant = tenant(&stage, 0).await?;
    move_to_an_authority_of_their_own(&stage, &tenant).await
}

fn manifests(numbers: std::ops::Range<usize>) -> String {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: { name: tenants }\n";
    let tenants = numbers.map(|number| {
        format!(
            "---
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: {{ name: t{number}, namespace: tenants }}
spec:
  kubernetes: {{ version: v1.36.3 }}
  controlPlane:
    deployment: {{ replicas: 1, resources: {{ apiServer: {{ requests: {{ cpu: 10m }} }}, controllerManager: {{ requests: {{ cpu: 10m }} }}, scheduler: {{ requests: {{ cpu: 10m }} }} }} }}
    service: {{ serviceType: ClusterIP }}
"
        )
    });
    std::iter::once(namespace.to_owned())
        .chain(tenants)
        .collect()
}

/// Tenants inside the cluster's network: asked from there.
async fn tenant(stage: &Stage, number: usize) -> Result<Tenant> {
    let tenant = stage.tenant("tenants", &format!("t{number}")).await?;
    Ok(tenant.seen_from(stage.lab.mgmt()))
}

/// From `kubectl apply` to Available, as the objects' own times tell it.
async fn where_the_time_went(stage: &Stage) -> Result<String> {
    let read = async |kind: &str, name: &[&str], path: &str| {
        let output = format!("jsonpath={path}");
        let mut words = vec!["get", kind, "-n", "tenants", "-o", &output];
        words.extend(name);
        stage.kubectl(&words).await
    };
    let pod = ["-l", "steward.butlerlabs.dev/name=t0"];
    let server = ".items[0].status.containerStatuses[?(@.name==\"kube-apiserver\")]";
    let applied = read("tcp", &["t0"], "{.metadata.creationTimestamp}").await?;
    let scheduled = read("pods", &pod, "{.items[0].status.startTime}").await?;
    let started = read(
        "pods",
        &pod,
        &format!("{{{server}.state.running.startedAt}}"),
    )
    .await?;
    let ready = ".items[0].status.conditions[?(@.type==\"Ready\")].lastTransitionTime";
    let ready = read("pods", &pod, &format!("{{{ready}}}")).await?;
    let path = "{.status.conditions[?(@.type==\"Available\")].lastTransitionTime}";
    let available = read("tcp", &["t0"], path).await?;
    Ok(format!(
        "applied {applied}, pod scheduled {scheduled}, API server started {started}, \
         pod ready {ready}, tenant Available {available}"
    ))
}

async fn a_budget_protects_the_members(stage: &Stage) -> Result<()> {
    let path = "jsonpath={.spec.maxUnavailable} {.status.currentHealthy}";
    let words = [
        "get",
        "pdb",
        "default-etcd",
        "-n",
        "steward-system",
        "-o",
        path,
    ];
    let budget = stage.kubectl(&words).await?;
    ensure!(budget == "1 3", "{budget}");
    let path = "jsonpath={.items[*].status.phase}";
    let words = ["get", "pvc", "-n", "steward-system", "-o", path];
    let claims = stage.kubectl(&words).await?;
    ensure!(claims == "Bound Bound Bound", "{claims}");
    Ok(())
}

async fn credentials_open_nobody_else_s_keys(stage: &Stage, etcd: &Etcd<'_>) -> Result<()> {
    let own = uid(stage, "t0").await?;
    let other = uid(stage, "t1").await?;
    let keys = ["server.crt", "server.key"];
    let login = etcd
        .login("tenants", "t0-datastore-certificate", keys)
        .await?;
    let read = |uid: &str| format!("get /{uid}/ --prefix --keys-only --limit=3");
    let found = etcd.ctl(&login, &read(&own)).await?;
    ensure!(found.contains(&format!("/{own}/")), "{found}");
    for forbidden in [
        read(&other),
        format!("put /{other}/mine yes"),
        format!("del /{other}/ --prefix"),
        "get / --prefix --keys-only --limit=1".to_owned(),
        "user list".to_owned(),
        format!("role grant-permission {own} readwrite /{other}/ --prefix"),
    ] {
        let refused = match etcd.ctl(&login, &forbidden).await {
            Err(refused) => format!("{refused:#}"),
            Ok(answer) => anyhow::bail!("{forbidden} was answered: {answer}"),
        };
        ensure!(
            refused.contains("permission denied"),
            "{forbidden}: {refused}"
        );
    }
    Ok(())
}

async fn uid(stage: &Stage, tenant: &str) -> Result<String> {
    let path = "jsonpath={.metadata.uid}";
    stage
        .kubectl(&["get", "tcp", tenant, "-n", "tenants", "-o", path])
        .await
}

async fn tenants_go_on_when_a_member_dies(stage: &Stage, tenants: &[Tenant]) -> Result<()> {
    for tenant in tenants {
        tenant.kubectl(&["create", "configmap", "before"]).await?;
    }
    let victim = "default-etcd-1";
    let words = [
        "delete",
        "pod",
        victim,
        "-n",
        "steward-system",
        "--force",
        "--grace-period=0",
    ];
    stage.kubectl(&words).await?;
    for tenant in tenants {
        wait_for(&format!("{} to write", tenant.name()), 120, async || {
            tenant.kubectl(&["create", "configmap", "after"]).await
        })
        .await?;
        let found = tenant.kubectl(&["get", "configmaps", "-o", "name"]).await?;
        ensure!(found.contains("configmap/before"), "{found}");
    }
    wait_for("all members to be back", 240, async || {
        let path = "jsonpath={.status.managed.readyReplicas} {.status.ready}";
        let members = stage
            .kubectl(&["get", "datastore", "default", "-o", path])
            .await?;
        ensure!(members == "3 true", "{members}");
        Ok(())
    })
    .await
}

/// Members as an earlier version made them: one authority signs them and the tenants.
const FROM_BEFORE: &str = r#"
kubectl scale deployment steward -n steward-system --replicas=0
kubectl wait pod -n steward-system -l app.kubernetes.io/name=steward --for=delete --timeout=120s
kubectl get statefulset default-etcd -n steward-system -o json > members.json
kubectl delete statefulset default-etcd -n steward-system --cascade=foreground --timeout=120s
kubectl delete secret -n steward-system default-etcd-peer-ca default-etcd-peer
python3 - <<'EDIT'
import json
members = json.load(open("members.json"))
members.pop("status")
for field in ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"):
    members["metadata"].pop(field, None)
template = members["spec"]["template"]
template["metadata"]["annotations"].pop("steward.butlerlabs.dev/peers")
etcd = template["spec"]["containers"][0]
etcd["args"] = [arg for arg in etcd["args"] if not arg.startswith("--peer-")] + [
    "--peer-client-cert-auth=true",
    "--peer-trusted-ca-file=/etc/etcd/pki/ca.crt",
    "--peer-cert-file=/etc/etcd/pki/tls.crt",
    "--peer-key-file=/etc/etcd/pki/tls.key",
]
for volume in template["spec"]["volumes"]:
    sources = volume.get("projected", {}).get("sources", [])
    sources[:] = [one for one in sources if one["secret"]["name"] != "default-etcd-peer"]
json.dump(members, open("members.json", "w"))
EDIT
kubectl create -f members.json
kubectl rollout status statefulset default-etcd -n steward-system --timeout=180s
"#;

/// Three rollouts, and no request of a tenant fails meanwhile.
async fn move_to_an_authority_of_their_own(stage: &Stage, tenant: &Tenant) -> Result<()> {
    let folder = stage.folder().join("load");
    std::fs::create_dir(&folder)?;
    let script = format!("cd {}\n{FROM_BEFORE}", folder.display());
    stage.lab.mgmt().script(&script).await?;
    // Without any member its API server was down too. It may be restarted for that, late, and that is no news.
    wait_for("the tenant to answer for a while", 240, async || {
        let kubeconfig = tenant.kubeconfig().display().to_string();
        let ask = format!("kubectl --kubeconfig {kubeconfig} get --raw /readyz");
        let twenty = format!("for second in $(seq 20); do {ask}; sleep 1; done");
        Ok(stage.lab.mgmt().script(&twenty).await?)
    })
    .await?;
    tenant
        .kubectl(&["create", "configmap", "by-the-old-ones"])
        .await?;
    let path = "jsonpath={.status.controlPlaneEndpoint}";
    let words = ["get", "tcp", tenant.name(), "-n", "tenants", "-o", path];
    let endpoint = stage.kubectl(&words).await?;
    let url = format!("https://{endpoint}/api/v1/namespaces/default/configmaps");
    let load = Load::start(&stage.lab.mgmt(), &folder, tenant.kubeconfig(), &url)?;
    let words = [
        "scale",
        "deployment",
        "steward",
        "-n",
        "steward-system",
        "--replicas=1",
    ];
    stage.kubectl(&words).await?;
    wait_for(
        "members to trust their own authority alone",
        420,
        async || {
            let path = "jsonpath={.status.managed.peers} {.status.managed.readyReplicas}";
            let words = ["get", "datastore", "default", "-o", path];
            let seen = stage.kubectl(&words).await?;
            ensure!(seen == "Own 3", "{seen}");
            let path = "jsonpath={.status.updatedReplicas} {.status.readyReplicas} \
                    {.spec.template.metadata.annotations.steward\\.butlerlabs\\.dev/peers}";
            let words = [
                "get",
                "statefulset",
                "default-etcd",
                "-n",
                "steward-system",
                "-o",
                path,
            ];
            let seen = stage.kubectl(&words).await?;
            ensure!(seen == "3 3 Own", "{seen}");
            Ok(())
        },
    )
    .await?;
    let made = load.finish().await?;
    eprintln!("members got an authority of their own while {made} requests were answered");
    let found = tenant.kubectl(&["get", "configmaps", "-o", "name"]).await?;
    ensure!(found.contains("by-the-old-ones"), "{found}");
    Ok(())
}

/// A lot is written and deleted. Compaction frees it, defragmentation gives it back.
async fn space_is_given_back_member_by_member(stage: &Stage, etcd: &Etcd<'_>) -> Result<()> {
    let root = etcd.root().await?;
    etcd.fill(&root, 40).await?;
    etcd.ctl(&root, "del /ballast/ --prefix").await?;
    let status = etcd.ctl(&root, "endpoint status -w fields").await?;
    let revision = status
        .lines()
        .find_map(|line| line.strip_prefix("\"Revision\" : "))
        .with_context(|| format!("no revision in {status}"))?;
    etcd.ctl(&root, &format!("compact {revision} --physical"))
        .await?;
    let members = wait_for("every member to be defragmented", 400, async || {
        let path = "jsonpath={range .items[*]}{.note}{\"\\n\"}{end}";
        let field = "--field-selector=reason=Defragmented";
        let words = [
            "get",
            "events.events.k8s.io",
            "-n",
            "default",
            field,
            "-o",
            path,
        ];
        let notes = stage.kubectl(&words).await?;
        for member in ["default-etcd-0.", "default-etcd-1.", "default-etcd-2."] {
            ensure!(notes.contains(member), "{notes}");
        }
        Ok(notes)
    })
    .await?;
    eprint!("{members}");
    Ok(())
}

async fn nothing_is_left(stage: &Stage, etcd: &Etcd<'_>) -> Result<()> {
    let words = ["delete", "tcp", "--all", "-n", "tenants", "--timeout=240s"];
    stage.kubectl(&words).await?;
    let root = etcd.root().await?;
    for (what, expected) in [("user list", "root"), ("role list", "root")] {
        let found = etcd.ctl(&root, what).await?;
        ensure!(found.trim() == expected, "{what}: {found}");
    }
    let keys = etcd.ctl(&root, "get / --prefix --keys-only").await?;
    ensure!(keys.trim().is_empty(), "still there: {keys}");
    wait_for("an empty namespace", 180, async || {
        let kinds = "secrets,services,deployments,pods,poddisruptionbudgets,configmaps";
        let left = stage
            .kubectl(&["get", kinds, "-n", "tenants", "-o", "name"])
            .await?;
        ensure!(
            left.trim() == "configmap/kube-root-ca.crt",
            "still there: {left}"
        );
        Ok(())
    })
    .await
}
