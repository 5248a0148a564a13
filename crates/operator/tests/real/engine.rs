//! The apply engine against a real API server: what server-side apply really does.

use kube::Client;
use serde_json::{Value, json};
use steward_lab::fixture::ApiServer;
use steward_operator::{
    apply::{Cluster, Engine, Outcome},
    metrics::Metrics,
};
use steward_plan::{Kind, Live, Object, ObjectKey, Prune, Stage};

const LABEL: &str = "steward.butlerlabs.dev/name";

struct Bench {
    client: Client,
    engine: Engine,
    metrics: Metrics,
    namespace: String,
}

impl Bench {
    async fn new() -> Self {
        let server = ApiServer::shared().await.unwrap();
        let client = server.client().await.unwrap();
        let metrics = Metrics::default();
        let engine = Engine::new(client.clone(), Cluster::Management, metrics.clone());
        Self {
            client,
            engine,
            metrics,
            namespace: server.namespace("engine").await.unwrap(),
        }
    }

    fn object(&self, kind: Kind, content: &Value) -> Object {
        let name = format!("t-{}", self.namespace);
        let mut body = json!({
            "apiVersion": kind.api_version(), "kind": kind.names().2,
            "metadata": {"name": name, "labels": {LABEL: self.namespace, "extra": "x"}},
        });
        let key = if kind.namespaced() {
            body["metadata"]["namespace"] = json!(self.namespace);
            ObjectKey::new(kind, &self.namespace, name)
        } else {
            ObjectKey::cluster(kind, name)
        };
        for (field, value) in content.as_object().unwrap() {
            body[field] = value.clone();
        }
        Object {
            key,
            stage: Stage::Config,
            because: "the test wants it",
            body,
        }
    }

    /// One object of every kind that a plain API server knows.
    fn objects(&self) -> Vec<Object> {
        let subject =
            json!([{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "g"}]);
        let rules = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]);
        let role = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"});
        let pod = json!({"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "c", "image": "i", "args": ["--x=1", "--y"], "command": ["z"],
                "env": [{"name": "E", "value": "1"}, {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                "ports": [{"name": "p", "containerPort": 6443}], "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}},
                "livenessProbe": {"httpGet": {"path": "/livez", "port": 6443, "scheme": "HTTPS"}},
                "securityContext": {"capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "tolerations": [{"operator": "Exists"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "h", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"a": "b"}}}],
            "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}}]}}, {"name": "e", "emptyDir": {}}]}});
        let selector = json!({"matchLabels": {"a": "b"}});
        let port = json!([{"name": "a", "port": 443, "targetPort": 6443}]);
        vec![
            self.object(Kind::Secret, &json!({"data": {"a": "Yg=="}, "type": "Opaque"})),
            self.object(Kind::ConfigMap, &json!({"data": {"a": "b"}})),
            self.object(Kind::Service, &json!({"spec": {"type": "LoadBalancer", "ports": port, "selector": {"a": "b"}}})),
            self.object(Kind::ServiceAccount, &json!({"automountServiceAccountToken": false})),
            self.object(Kind::Endpoints, &json!({"subsets": [{"addresses": [{"ip": "240.0.0.1"}], "ports": [{"name": "https", "port": 6443}]}]})),
            self.object(Kind::EndpointSlice, &json!({"addressType": "IPv4", "endpoints": [{"addresses": ["240.0.0.1"], "conditions": {"ready": true}}], "ports": [{"name": "https", "port": 6443}]})),
            self.object(Kind::Deployment, &json!({"spec": {"replicas": 2, "selector": selector, "template": pod}})),
            self.object(Kind::DaemonSet, &json!({"spec": {"selector": selector, "template": pod, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}}})),
            self.object(Kind::StatefulSet, &json!({"spec": {"serviceName": "s", "replicas": 1, "selector": selector, "template": pod,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}}]}})),
            self.object(Kind::PodDisruptionBudget, &json!({"spec": {"maxUnavailable": 1, "selector": selector}})),
            self.object(Kind::Ingress, &json!({"spec": {"ingressClassName": "c", "rules": [{"host": "a.example.com", "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 443}}}}]}}]}})),
            self.object(Kind::Role, &json!({"rules": rules})),
            self.object(Kind::RoleBinding, &json!({"roleRef": role("Role"), "subjects": subject})),
            self.object(Kind::ClusterRole, &json!({"rules": rules})),
            self.object(Kind::ClusterRoleBinding, &json!({"roleRef": role("ClusterRole"), "subjects": subject})),
        ]
    }

    fn kinds(&self) -> Vec<Kind> {
        self.objects()
            .iter()
            .map(|object| object.key.kind)
            .collect()
    }

    async fn live(&self) -> Live {
        let selector = format!("{LABEL}={}", self.namespace);
        self.engine
            .list_inside(&self.kinds(), &selector)
            .await
            .unwrap()
    }

    async fn apply(&self, objects: &[Object]) -> Vec<Outcome> {
        let live = self.live().await;
        let objects: Vec<&Object> = objects.iter().collect();
        self.engine
            .apply_all(&objects, &live)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect()
    }

    fn requests(&self) -> usize {
        self.metrics
            .render()
            .lines()
            .filter(|line| line.starts_with("steward_writes_total"))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
            .sum()
    }

    /// Edits an object as a person with kubectl would.
    async fn edit(&self, key: &ObjectKey, patch: &Value) {
        use kube::api::{Patch, PatchParams};
        let request = kube::core::Request::new(steward_operator::apply::path(
            key.kind,
            key.namespace.as_deref(),
        ))
        .patch(
            &key.name,
            &PatchParams {
                field_manager: Some("kubectl-edit".into()),
                ..PatchParams::default()
            },
            &Patch::Merge(patch),
        )
        .unwrap();
        self.client.request::<Value>(request).await.unwrap();
    }
}

#[tokio::test]
async fn at_rest_no_kind_is_written_again_and_metadata_is_enough_to_know() {
    let bench = Bench::new().await;
    let objects = bench.objects();
    assert!(
        bench
            .apply(&objects)
            .await
            .iter()
            .all(|outcome| matches!(outcome, Outcome::Created(_)))
    );
    let before = bench.requests();
    let outcomes = bench.apply(&objects).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| *outcome == Outcome::Unchanged)
    );
    assert_eq!(
        bench.requests(),
        before,
        "no request may be sent: {}",
        bench.metrics.render()
    );
}

#[tokio::test]
async fn whatever_someone_edits_or_deletes_comes_back() {
    let bench = Bench::new().await;
    let objects = bench.objects();
    bench.apply(&objects).await;
    for object in &objects {
        bench
            .edit(
                &object.key,
                &json!({"metadata": {"labels": {"extra": "changed"}}}),
            )
            .await;
        let outcomes = bench.apply(&objects).await;
        let changed: Vec<&ObjectKey> = objects
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| **outcome != Outcome::Unchanged)
            .map(|(object, _)| &object.key)
            .collect();
        assert_eq!(changed, [&object.key]);
        let live = bench.live().await;
        assert_eq!(
            live.0[&object.key]["metadata"]["labels"]["extra"], "x",
            "{}",
            object.key
        );

        bench.engine.delete(&object.key, None).await.unwrap();
        let outcomes = bench.apply(&objects).await;
        let made: Vec<&ObjectKey> = objects
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| matches!(outcome, Outcome::Created(_)))
            .map(|(object, _)| &object.key)
            .collect();
        assert!(made.contains(&&object.key), "{made:?}");
    }
}

#[tokio::test]
async fn a_changed_field_deep_inside_is_noticed_and_put_right() {
    let bench = Bench::new().await;
    let objects = bench.objects();
    bench.apply(&objects).await;
    let find = |kind| {
        objects
            .iter()
            .find(|object| object.key.kind == kind)
            .unwrap()
    };
    let edits = [
        (Kind::Secret, json!({"data": {"a": "Yw=="}})),
        (Kind::Secret, json!({"data": {"a": null}})),
        (Kind::Deployment, json!({"spec": {"replicas": 7}})),
        (
            Kind::Deployment,
            json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "other"}]}}}}),
        ),
        (Kind::Service, json!({"spec": {"selector": {"a": "other"}}})),
        (Kind::ClusterRole, json!({"rules": []})),
        (Kind::EndpointSlice, json!({"endpoints": []})),
    ];
    for (kind, edit) in edits {
        let object = find(kind);
        bench.edit(&object.key, &edit).await;
        let outcomes = bench.apply(&objects).await;
        let updated = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Outcome::Updated(_)))
            .count();
        assert_eq!(updated, 1, "{kind:?}: {edit}");
        let after = bench.engine.get(&object.key).await.unwrap().unwrap();
        assert_eq!(
            steward_plan::compare::difference(&object.body["data"], &after["data"]),
            None,
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn a_status_or_a_foreign_field_causes_no_write() {
    let bench = Bench::new().await;
    let objects = bench.objects();
    bench.apply(&objects).await;
    let deployment = objects
        .iter()
        .find(|object| object.key.kind == Kind::Deployment)
        .unwrap();
    bench
        .edit(
            &deployment.key,
            &json!({"metadata": {"annotations": {"someone.else/x": "y"}}}),
        )
        .await;
    let before = bench.requests();
    bench.apply(&objects).await;
    assert_eq!(bench.requests(), before);
}

#[tokio::test]
async fn a_field_that_is_no_longer_planned_goes() {
    let bench = Bench::new().await;
    let mut objects = bench.objects();
    bench.apply(&objects).await;
    objects[1].body["data"] = json!({"other": "b"});
    bench.apply(&objects).await;
    let after = bench.engine.get(&objects[1].key).await.unwrap().unwrap();
    assert_eq!(after["data"], json!({"other": "b"}));
}

#[tokio::test]
async fn what_is_no_longer_planned_is_removed_and_nothing_else() {
    let bench = Bench::new().await;
    let objects = bench.objects();
    bench.apply(&objects).await;
    let other = Bench::new().await;
    other.apply(&other.objects()).await;
    let prune = Prune {
        kinds: bench.kinds(),
        namespaces: vec![bench.namespace.clone()],
        labels: [(LABEL.to_owned(), bench.namespace.clone())].into(),
        keep: vec![objects[1].key.clone()],
    };
    let live = bench.live().await;
    let removed = bench.engine.prune(&prune, &objects[2..3], &live).await;
    assert_eq!(removed.len(), objects.len() - 2);
    assert!(removed.iter().all(Result::is_ok));
    let left: Vec<_> = bench.live().await.0.into_keys().collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(other.live().await.0.len(), other.objects().len());
}

#[tokio::test]
async fn a_kind_that_is_not_served_has_no_objects() {
    let bench = Bench::new().await;
    let live = bench
        .engine
        .list(&[Kind::IngressRouteTcp, Kind::TlsRouteV1], None, "a=b")
        .await
        .unwrap();
    assert!(live.0.is_empty());
}

/// As many as a tenant's administrator likes, with our label, each as large as it gets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inside_a_tenant_labels_are_counted_and_contents_are_not_read() {
    const MANY: usize = 520;
    let bench = Bench::new().await;
    let labels = format!("{LABEL}={}", bench.namespace);
    let api: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(bench.client.clone(), &bench.namespace);
    let make = async |number: usize| {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("flood-{number}"), "labels": {LABEL: bench.namespace}},
            "data": {"large": "x".repeat(100_000)}});
        let object = serde_json::from_value(body).unwrap();
        api.create(&kube::api::PostParams::default(), &object)
            .await
            .unwrap();
    };
    futures::future::join_all((0..20).map(&make)).await;
    let few = bench.engine.list_inside(&[Kind::ConfigMap], &labels).await;
    let few = few.unwrap();
    assert_eq!(few.0.len(), 20);
    assert!(
        few.0.values().all(|object| object["data"].is_null()),
        "contents were read"
    );
    for start in (20..MANY).step_by(20) {
        futures::future::join_all((start..start + 20).map(&make)).await;
    }
    let many = bench.engine.list_inside(&[Kind::ConfigMap], &labels).await;
    let said = many.unwrap_err().to_string();
    assert!(
        said.contains("more than 500 configmaps carry the label") && said.contains(&labels),
        "{said}"
    );
    let all = kube::api::ListParams::default().labels(&labels);
    api.delete_collection(&kube::api::DeleteParams::default(), &all)
        .await
        .unwrap();
}
