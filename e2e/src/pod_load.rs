//! Pods that ask their own API server while something is done to the cluster.
//!
//! They write down on their worker what came of it: reading that disturbs nobody, however many they are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use steward_lab::Host;

use crate::crowd::Figures;
use crate::stage::wait_for;
use crate::tenant::Tenant;

/// Where pods write on their worker, a folder for each: below what each worker of a lab has for itself.
const NOTES: &str = "/var/lib/kubelet/crowd";

/// Pods that ask by `kubernetes.default.svc`, one or several loops in each: half of the loops open a
/// connection per request, half keep one for five.
pub struct PodLoad {
    notes: PathBuf,
    before: Seen,
}

/// What pods have noted since they started.
#[derive(Default)]
struct Seen {
    /// Per loop: how often it noted, and how many answers it has had.
    loops: BTreeMap<String, (u64, u64)>,
    /// A line for every failure, the oldest first.
    words: Vec<String>,
}

impl PodLoad {
    /// Starts so many pods with so many loops each on the tenant's one worker, and waits until all of them had an
    /// answer. The default account must be allowed to get namespaces; `uid` is that of kube-system.
    pub async fn start(
        tenant: &Tenant,
        worker: &Host,
        uid: &str,
        (pods, loops): (u32, u32),
    ) -> Result<Self> {
        let script = SCRIPT
            .replace("THE_UID", uid)
            .replace("LOOPS", &loops.to_string())
            .replace('\n', "\n          ");
        tenant.apply(&manifest(pods, &script)).await?;
        let mut load = Self {
            notes: worker.path(NOTES),
            before: Seen::default(),
        };
        let answered = wait_for("every pod of the crowd to be answered", 300, async || {
            let seen = load.read()?;
            let served = seen.loops.values().filter(|(_, answered)| *answered > 0);
            let served = served.count();
            ensure!(
                served == (pods * loops) as usize,
                "{served} loops were answered, and failed: {:?}",
                seen.words
            );
            Ok(())
        })
        .await;
        if let Err(error) = answered {
            bail!("{error:#}\n{}", said(tenant).await);
        }
        // What failed while the pod's own network came up does not count, however late it is noted.
        load.take().await?;
        Ok(load)
    }

    /// What has come of it since it was last asked, after every loop came to its turn again.
    pub async fn take(&mut self) -> Result<Figures> {
        let now = self.read()?;
        // The turn that goes on now began earlier; the one after it did not.
        let seen = wait_for("every pod to come to its turn again", 180, async || {
            let seen = self.read()?;
            let late = now.loops.iter().find(|(name, (turn, _))| {
                seen.loops
                    .get(*name)
                    .is_none_or(|(newer, _)| *newer < turn + 2)
            });
            ensure!(late.is_none(), "{late:?}");
            Ok(seen)
        })
        .await?;
        let before = std::mem::replace(&mut self.before, seen);
        let seen = &self.before;
        let new: Vec<String> = seen.words[before.words.len()..].to_vec();
        Ok(Figures {
            answered: seen.answered() - before.answered(),
            failed: new.len() as u64,
            refused: new.iter().filter(|w| w.contains("onnect to")).count() as u64,
            misrouted: new.iter().filter(|w| w.contains("misrouted")).count() as u64,
            words: new.into_iter().take(20).collect(),
            ..Figures::default()
        })
    }

    fn read(&self) -> Result<Seen> {
        let mut seen = Seen::default();
        let Ok(pods) = self.notes.read_dir() else {
            return Ok(seen);
        };
        for pod in pods {
            let pod = pod?;
            let name = pod.file_name().to_string_lossy().into_owned();
            for file in pod.path().read_dir()? {
                let file = file?.path();
                let kind = file.extension().and_then(|kind| kind.to_str());
                if !matches!(kind, Some("ok" | "bad")) {
                    continue;
                }
                let said = std::fs::read_to_string(&file)
                    .with_context(|| format!("reading {}", file.display()))?;
                for line in said.lines() {
                    seen.note(&name, line)?;
                }
            }
        }
        seen.words
            .sort_by_key(|line| line.split(' ').nth(1).map(str::to_owned));
        Ok(seen)
    }
}

impl Seen {
    fn note(&mut self, pod: &str, line: &str) -> Result<()> {
        let Some(counts) = line.strip_prefix("ok ") else {
            self.words.push(format!("{pod}: {line}"));
            return Ok(());
        };
        let counts: Vec<&str> = counts.split(' ').collect();
        let [name, turn, answered] = counts[..] else {
            bail!("{pod} noted {line}");
        };
        let counts = (turn.parse()?, answered.parse()?);
        self.loops.insert(format!("{pod} {name}"), counts);
        Ok(())
    }

    fn answered(&self) -> u64 {
        self.loops.values().map(|(_, answered)| answered).sum()
    }
}

/// What the crowd's pods are, and their last words.
async fn said(tenant: &Tenant) -> String {
    let pods = ["get", "pods", "-l", "app=crowd", "-o", "wide"];
    let logs = ["logs", "-l", "app=crowd", "--tail=3", "--prefix"];
    let (pods, logs) = (tenant.kubectl(&pods).await, tenant.kubectl(&logs).await);
    format!("{}\n{}", pods.unwrap_or_default(), logs.unwrap_or_default())
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
        volumeMounts: [ {{ name: notes, mountPath: /notes }} ]
      volumes: [ {{ name: notes, hostPath: {{ path: {NOTES}, type: DirectoryOrCreate }} }} ]
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
  total=$(($1 + good)); echo "ok $2 $3 $total" > "$2.new"; mv "$2.new" "$2.ok"
}
opener() { total=0; turn=0; while :; do ask "$url" > "$1.out"; turn=$((turn + 1)); note $total "$1" $turn; sleep 4; done; }
keeper() { total=0; turn=0; while :; do ask --rate 30/m "$url?n=[1-5]" > "$1.out"; turn=$((turn + 1)); note $total "$1" $turn; done; }
mkdir -p /notes/$HOSTNAME; cd /notes/$HOSTNAME
# Of pods with one loop each, too, about half are of either kind.
case $HOSTNAME in *[b-l24]) kind=0;; *) kind=1;; esac
loop=0
while [ $loop -lt LOOPS ]; do
  if [ $(((loop + kind) % 2)) = 0 ]; then opener $loop & else keeper $loop & fi
  loop=$((loop + 1))
done
wait
"#;
