//! The lab plays the cloud: a program on `mgmt` that gives Services of type
//! `LoadBalancer` an address.
//!
//! The address is put on the host's loopback, the router sends the whole range
//! there, and kube-proxy does the rest, as it does behind any cloud's balancer.
//! Services of another load balancer class are somebody else's.

mod addresses;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    pin::pin,
    time::Duration,
};

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{WatchStreamExt, watcher},
};
use tokio::process::Command;

use crate::{Error, Lab, host::ADMIN_CONF, lab::own_unit};

/// A Service may name it as its class, to say that it means the lab.
pub const CLASS: &str = "steward-lab";

/// What could not be done now is tried again after this.
const AGAIN: Duration = Duration::from_secs(2);

/// Every Service, by namespace and name.
type Services = BTreeMap<(String, String), Service>;

/// Starts the program.
pub(crate) fn start(lab: &Lab) -> Result<(), Error> {
    let layout = lab.layout();
    lab.mgmt().start(own_unit(
        layout,
        "cloud",
        &["--name", layout.name().as_str()],
    ))
}

/// Serves the cluster of the host it runs on, for ever.
pub async fn serve() -> Result<(), Error> {
    let client = client().await?;
    let services = Api::<Service>::all(client.clone());
    let mut events = pin!(watcher(services, watcher::Config::default()).default_backoff());
    let (mut known, mut listed, mut plugged) = (Services::new(), None, BTreeSet::new());
    loop {
        match tokio::time::timeout(AGAIN, events.try_next()).await {
            Ok(Ok(Some(event))) => note(&mut known, &mut listed, event),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => eprintln!("watching Services: {error}"),
            Err(_) => {}
        }
        // Half a list would free addresses that are in use.
        if listed.is_some() {
            continue;
        }
        if let Err(error) = settle(&client, &known, &mut plugged).await {
            eprintln!("{}", error.chain());
        }
    }
}

/// Takes an event in. While a list is coming in, it is kept apart in `listed`.
fn note(known: &mut Services, listed: &mut Option<Services>, event: watcher::Event<Service>) {
    let key = |s: &Service| (s.namespace().unwrap_or_default(), s.name_any());
    match event {
        watcher::Event::Init => *listed = Some(Services::new()),
        watcher::Event::InitApply(service) => {
            if let Some(listed) = listed {
                listed.insert(key(&service), service);
            }
        }
        watcher::Event::InitDone => *known = listed.take().unwrap_or_default(),
        watcher::Event::Apply(service) => {
            known.insert(key(&service), service);
        }
        watcher::Event::Delete(service) => {
            known.remove(&key(&service));
        }
    }
}

/// Brings addresses in Services' status and on this host to what they should be.
async fn settle(
    client: &Client,
    known: &Services,
    plugged: &mut BTreeSet<Ipv4Addr>,
) -> Result<(), Error> {
    let wanted = addresses::assign(known);
    for address in wanted.values().filter(|address| !plugged.contains(address)) {
        loopback("replace", *address).await?;
    }
    let old: Vec<Ipv4Addr> = plugged
        .iter()
        .filter(|address| !wanted.values().any(|w| w == *address))
        .copied()
        .collect();
    for address in old {
        loopback("del", address).await?;
        plugged.remove(&address);
    }
    plugged.extend(wanted.values());
    for ((namespace, name), service) in known {
        let address = wanted.get(&(namespace.clone(), name.clone())).copied();
        if addresses::is_ours(service) && addresses::of(service) != address {
            announce(client, namespace, name, address).await?;
        }
    }
    Ok(())
}

async fn loopback(verb: &str, address: Ipv4Addr) -> Result<(), Error> {
    let address = format!("{address}/32");
    let status = Command::new("ip")
        .args(["addr", verb, &address, "dev", "lo"])
        .status()
        .await
        .map_err(Error::files("start", "ip"))?;
    if status.success() || verb == "del" {
        return Ok(());
    }
    Err(Error::Command {
        what: format!("putting {address} on this host"),
        status: status.to_string(),
        output: String::new(),
    })
}

async fn announce(
    client: &Client,
    namespace: &str,
    name: &str,
    address: Option<Ipv4Addr>,
) -> Result<(), Error> {
    let ingress: Vec<_> = address
        .iter()
        .map(|a| serde_json::json!({ "ip": a }))
        .collect();
    let patch = serde_json::json!({ "status": { "loadBalancer": { "ingress": ingress } } });
    let result = Api::<Service>::namespaced(client.clone(), namespace)
        .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    match result {
        // Deleted meanwhile.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other
            .map(|_| ())
            .map_err(Error::kubernetes(format!("announce {namespace}/{name}"))),
    }
}

async fn client() -> Result<Client, Error> {
    let unusable = |why: String| Error::Kubernetes {
        what: format!("use {ADMIN_CONF}"),
        why,
    };
    let kubeconfig = Kubeconfig::read_from(ADMIN_CONF).map_err(|e| unusable(e.to_string()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|e| unusable(e.to_string()))?;
    Client::try_from(config).map_err(Error::kubernetes("make a client"))
}
