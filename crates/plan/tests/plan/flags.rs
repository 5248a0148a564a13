//! Flags that must be as Steward says, whatever extra arguments call them.
//!
//! The programs read `_` in a flag as `-`, and the last of two equal flags wins. Every spelling of
//! every managed flag is tried, so nothing is left to chance.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steward_plan::Kind;

use crate::world::World;

/// Flags that a user may set otherwise.
const FREE: [&str; 10] = [
    "enable-admission-plugins",
    "goaway-chance",
    "service-account-issuer",
    "shutdown-delay-duration",
    "leader-elect",
    "allocate-node-cidrs",
    "controllers",
    "frontend-keepalive-time",
    "keepalive-time",
    "logtostderr",
];

/// Programs that take extra arguments, and where the spec has them.
const PROGRAMS: [(&str, &str); 4] = [
    (
        "kube-apiserver",
        "/controlPlane/deployment/extraArgs/apiServer",
    ),
    (
        "kube-controller-manager",
        "/controlPlane/deployment/extraArgs/controllerManager",
    ),
    (
        "kube-scheduler",
        "/controlPlane/deployment/extraArgs/scheduler",
    ),
    (
        "konnectivity-server",
        "/addons/konnectivity/server/extraArgs",
    ),
];

const TENANT: &str = "
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: {name: t1}
spec:
  kubernetes: {version: v1.36.3}
  controlPlane:
    service: {serviceType: LoadBalancer}
    deployment: {extraArgs: {apiServer: [], controllerManager: [], scheduler: []}}
  addons: {konnectivity: {server: {extraArgs: []}}}
";

/// The arguments of a program in the planned Deployment.
fn arguments(world: &World, program: &str) -> Vec<String> {
    let deployment = world.live(Kind::Deployment, "t1").unwrap();
    let containers = &deployment["spec"]["template"]["spec"]["containers"];
    let container = containers
        .as_array()
        .unwrap()
        .iter()
        .find(|container| container["name"] == program)
        .unwrap();
    serde_json::from_value(container["args"].clone()).unwrap()
}

/// What a program makes of its arguments.
fn parsed(arguments: &[String]) -> BTreeMap<String, String> {
    arguments
        .iter()
        .map(|argument| {
            let (flag, value) = argument.split_once('=').unwrap();
            let flag = flag.strip_prefix("--").unwrap();
            (flag.replace('_', "-"), value.to_owned())
        })
        .collect()
}

/// All spellings of a flag: each `-` in it as `-` or as `_`.
fn spellings(flag: &str) -> Vec<String> {
    let mut words = flag.split('-');
    let first = words.next().unwrap().to_owned();
    words.fold(vec![first], |all, word| {
        let with = |sign: char| {
            all.iter()
                .map(move |start| format!("{start}{sign}{word}"))
                .collect::<Vec<_>>()
        };
        [with('-'), with('_')].concat()
    })
}

fn with_arguments(world: &mut World, place: &str, arguments: &[String]) {
    let mut spec = serde_json::to_value(&world.observed.tenant.spec).unwrap();
    let (owner, list) = place.rsplit_once('/').unwrap();
    let mut at: &mut Value = &mut spec;
    for step in owner.split('/').skip(1) {
        at = &mut at[step];
    }
    at[list] = json!(arguments);
    world.observed.tenant.spec = serde_json::from_value(spec).unwrap();
}

#[test]
fn every_managed_flag_survives_every_spelling_of_it() {
    for (program, place) in PROGRAMS {
        let mut world = World::new(TENANT);
        world.settle();
        let ours = parsed(&arguments(&world, program));
        let managed: BTreeMap<_, _> = ours
            .iter()
            .filter(|(flag, _)| !FREE.contains(&flag.as_str()))
            .collect();
        assert!(managed.len() >= 6, "{program}: {managed:?}");
        let spelt = managed.keys().flat_map(|flag| spellings(flag));
        let hostile: Vec<String> = spelt
            .flat_map(|flag| {
                [
                    format!("--{flag}=stolen"),
                    format!("-{flag}=stolen"),
                    format!("--{flag}"),
                    "stolen".into(),
                ]
            })
            .chain(["--v=5".into()])
            .collect();
        with_arguments(&mut world, place, &hostile);
        world.settle();
        let after = arguments(&world, program);
        assert!(
            !after.iter().any(|argument| argument.contains("stolen")),
            "{program}: {after:?}"
        );
        let after = parsed(&after);
        for (flag, value) in managed {
            assert_eq!(after.get(flag), Some(value), "{program} --{flag}");
        }
        assert_eq!(after.get("v").map(String::as_str), Some("5"), "{program}");
    }
}

#[test]
fn a_default_yields_however_it_is_spelt() {
    let mut world = World::new(TENANT);
    let (program, place) = PROGRAMS[0];
    with_arguments(&mut world, place, &["--goaway_chance=0".into()]);
    world.settle();
    let all = arguments(&world, program);
    let given: Vec<_> = all.iter().filter(|a| a.contains("goaway")).collect();
    assert_eq!(given, ["--goaway_chance=0"]);
}
