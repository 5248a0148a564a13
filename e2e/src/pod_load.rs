//! Pods that ask their own API server while something is done to the cluster.

use anyhow::{Context, Result, ensure};

use crate::crowd::Figures;
use crate::stage::wait_for;
use crate::tenant::Tenant;

/// Pods that ask by `kubernetes.default.svc`, several loops in each: half of the loops open a
/// connection per request, half keep one for ten.
pub struct PodLoad<'t> {
    tenant: &'t Tenant,
    before: (u64, usize, usize),
}

impl<'t> PodLoad<'t> {
    /// Starts so many pods with so many loops each, and waits until all of them have asked. The
    /// default account must be allowed to get namespaces; `uid` is that of kube-system.
    pub async fn start(tenant: &'t Tenant, uid: &str, pods: u32, loops: u32) -> Result<Self> {
        let script = SCRIPT
            .replace("THE_UID", uid)
            .replace("LOOPS", &loops.to_string())
            .replace('\n', "\n          ");
        tenant.apply(&manifest(pods, &script)).await?;
        let mut load = Self {
            tenant,
            before: (0, 0, 0),
        };
        wait_for("every pod of the crowd to ask", 240, async || {
            let seen = load.pods().await?;
            ensure!(seen.len() == pods as usize, "{} pods run", seen.len());
            let (answered, failed, words) = load.read().await?;
            ensure!(
                answered >= u64::from(pods * loops),
                "{answered} answered, {failed} failed: {words:?}"
            );
            Ok(())
        })
        .await?;
        // What failed while the pod's own network came up does not count.
        load.take().await?;
        Ok(load)
    }

    /// What has come of it since it was last asked.
    pub async fn take(&mut self) -> Result<Figures> {
        let (answered, failed, words) = self.read().await?;
        let (before, failed_before, misrouted_before) = self.before;
        let astray = words.iter().filter(|w| w.contains("misrouted")).count();
        self.before = (answered, failed, astray);
        Ok(Figures {
            answered: answered - before,
            failed: (failed - failed_before) as u64,
            misrouted: (astray - misrouted_before) as u64,
            words: words.into_iter().skip(failed_before).take(20).collect(),
            ..Figures::default()
        })
    }

    async fn pods(&self) -> Result<Vec<String>> {
        let path = "jsonpath={.items[?(@.status.phase==\"Running\")].metadata.name}";
        let found = self
            .tenant
            .kubectl(&["get", "pods", "-l", "app=crowd", "-o", path])
            .await?;
        Ok(found.split_whitespace().map(str::to_owned).collect())
    }

    /// Answers, failures and their words, of all pods since they started.
    async fn read(&self) -> Result<(u64, usize, Vec<String>)> {
        let (mut answered, mut words) = (0, Vec::new());
        for pod in self.pods().await? {
            let read = "cat /tmp/*.ok 2>/dev/null; echo; cat /tmp/*.bad 2>/dev/null; true";
            let said = wait_for("a pod to be looked into", 60, async || {
                self.tenant
                    .kubectl(&["exec", &pod, "--", "sh", "-c", read])
                    .await
            })
            .await?;
            for line in said.lines().filter(|line| !line.is_empty()) {
                match line.strip_prefix("ok ") {
                    Some(count) => answered += count.parse::<u64>().context("a count")?,
                    None => words.push(format!("{pod}: {line}")),
                }
            }
        }
        words.sort_by_key(|line| line.split(' ').nth(1).map(str::to_owned));
        Ok((answered, words.len(), words))
    }
}

fn manifest(pods: u32, script: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{ name: crowd }}
spec:
  replicas: {pods}
  selector: {{ matchLabels: {{ app: crowd }} }}
  template:
    metadata: {{ labels: {{ app: crowd }} }}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: crowd
        image: steward.lab/toolbox:1
        imagePullPolicy: IfNotPresent
        command:
        - sh
        - -c
        - |
          {script}
"
    )
}

/// A file per loop with the number of answers, another with a line per failure: first the time.
const SCRIPT: &str = r#"account=/var/run/secrets/kubernetes.io/serviceaccount
url=https://kubernetes.default.svc/api/v1/namespaces/kube-system
ask() { curl -sS --max-time 30 --cacert $account/ca.crt -H "Authorization: Bearer $(cat $account/token)" -w '\nstatus %{http_code} %{errormsg}\n' "$@" 2>/dev/null; }
note() {
  right=$(grep -c THE_UID "$2.out"); good=$(grep -c '^status 200' "$2.out")
  [ "$good" -le "$right" ] || echo "$(date +%s) misrouted" >> "$2.bad"
  grep '^status' "$2.out" | grep -v '^status 200' | sed "s/^/$(date +%s) /" >> "$2.bad"
  total=$(($1 + good)); echo "ok $total" > "$2.new"; mv "$2.new" "$2.ok"
}
opener() { total=0; while :; do ask "$url" > "$1.out"; note $total "$1"; sleep 2; done; }
keeper() { total=0; while :; do ask --rate 1/s "$url?n=[1-10]" > "$1.out"; note $total "$1"; done; }
loop=0
while [ $loop -lt LOOPS ]; do
  if [ $((loop % 2)) = 0 ]; then opener /tmp/$loop & else keeper /tmp/$loop & fi
  loop=$((loop + 1))
done
wait
"#;
