//! Keys that can't be made again: a lost, damaged or exchanged one stops everything, comes back, or is replaced
//! on purpose.

use std::{sync::OnceLock, time::Duration};

use serde_json::{Value, json};
use steward_api::{
    conditions::{ConditionType, Reason, find, holds},
    metadata::annotations,
};
use steward_pki::inspect;
use steward_plan::{
    Kind, Live, ObjectKey, Observed, Stage, Wish, named_secrets, report_problems, secret, validate,
};

use crate::world::World;

const PLAIN: &str = include_str!("../tenants/load-balancer.yaml");

/// The Secrets, and the file whose loss is the loss of the key.
const KEYS: [(&str, &[&str]); 3] = [
    ("t1-ca", &["ca.key", "tls.key"]),
    ("t1-front-proxy-ca-certificate", &["front-proxy-ca.key"]),
    ("t1-sa-certificate", &["sa.key"]),
];

/// A tenant at rest. Keys take time to make, so all tests begin with the same one.
fn settled() -> World {
    static FIRST: OnceLock<(Observed, Live)> = OnceLock::new();
    of(&FIRST)
}

/// Another, with keys of its own.
fn another() -> World {
    static SECOND: OnceLock<(Observed, Live)> = OnceLock::new();
    of(&SECOND)
}

fn of(made: &OnceLock<(Observed, Live)>) -> World {
    let mut world = World::new(PLAIN);
    let (observed, inside) = made.get_or_init(|| {
        let mut world = World::new(PLAIN);
        world.settle();
        (world.observed, world.inside)
    });
    world.observed = observed.clone();
    world.inside = inside.clone();
    world
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Kind::Secret, "tenants", name)
}

/// What may happen to a key, what is said of it, and how it was before.
struct Mishap {
    says: &'static str,
    world: World,
    backup: Value,
}

fn mishaps(name: &str, files: &[&str]) -> Vec<Mishap> {
    let lose = |says, how: &dyn Fn(&mut Live)| {
        let mut world = settled();
        let backup = world.observed.live.0[&key(name)].as_ref().clone();
        how(&mut world.observed.live);
        Mishap {
            says,
            world,
            backup,
        }
    };
    let other = another().observed.live.0[&key(name)]["data"].clone();
    vec![
        lose("is gone", &|live| drop(live.0.remove(&key(name)))),
        lose("holds no usable key", &|live| {
            for file in files {
                live.get_mut(&key(name)).unwrap()["data"][*file] = json!("cnVzdA==");
            }
        }),
        lose("holds another key", &|live| {
            live.get_mut(&key(name)).unwrap()["data"] = other.clone();
        }),
    ]
}

/// Everything but one Secret.
fn without(live: &Live, name: &str) -> Vec<(ObjectKey, Value)> {
    let others = live.0.iter().filter(|(other, _)| **other != key(name));
    others
        .map(|(key, body)| (key.clone(), body.as_ref().clone()))
        .collect()
}

#[test]
fn a_lost_damaged_or_exchanged_key_stops_everything_and_is_named() {
    for (name, files) in KEYS {
        for Mishap {
            says, mut world, ..
        } in mishaps(name, files)
        {
            // Due or not: what depends on the key is not rewritten.
            world.observed.now += Duration::from_hours(24 * 350);
            let problems = validate(&world.settings, &world.observed).unwrap_err();
            let [problem] = &problems[..] else {
                panic!("{problems:#?}")
            };
            assert_eq!(problem.reason, Reason::KeyLost);
            assert_eq!(problem.condition, ConditionType::CertificatesReady);
            let text = problem.to_string();
            for part in [
                says,
                &format!("Secret tenants/{name}"),
                &format!(
                    "kubectl annotate tcp -n tenants t1 {}={name}",
                    annotations::REPLACE_LOST_KEY
                ),
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
            let report = report_problems(&world.settings, &world.observed, &problems);
            let conditions = &report.status.conditions;
            assert!(holds(conditions, ConditionType::Available), "pods go on");
            assert!(!holds(conditions, ConditionType::CertificatesReady));
            let progress = find(conditions, ConditionType::Progressing).unwrap();
            assert_eq!(progress.reason, "KeyLost");
            assert!(
                report.next_check.is_some(),
                "a restored Secret may lack our label"
            );
        }
    }
}

#[test]
fn a_tenant_without_its_key_and_without_pods_is_not_available() {
    let mut world = settled();
    world.observed.live.0.remove(&key("t1-ca"));
    let pods = ObjectKey::new(Kind::Deployment, "tenants", "t1");
    world.observed.live.get_mut(&pods).unwrap()["status"]["readyReplicas"] = json!(0);
    let problems = validate(&world.settings, &world.observed).unwrap_err();
    let report = report_problems(&world.settings, &world.observed, &problems);
    let available = find(&report.status.conditions, ConditionType::Available).unwrap();
    assert_eq!(
        (&*available.status, &*available.reason),
        ("False", "KeyLost")
    );
}

#[test]
fn a_key_that_is_put_back_heals_without_a_single_write() {
    for (name, files) in KEYS {
        for Mishap {
            mut world, backup, ..
        } in mishaps(name, files)
        {
            world.observed.live.insert(key(name), backup);
            assert_eq!(world.settle().writes, 0, "{name}");
            assert!(world.holds(ConditionType::CertificatesReady));
        }
    }
}

#[test]
fn on_purpose_a_new_key_is_made_and_all_that_hangs_on_it_follows() {
    for (name, files) in KEYS {
        for Mishap {
            says,
            mut world,
            backup,
        } in mishaps(name, files)
        {
            let others = without(&world.observed.live, name);
            world.annotate(annotations::REPLACE_LOST_KEY, "t1-other");
            assert!(
                validate(&world.settings, &world.observed).is_err(),
                "another name"
            );
            world.annotate(annotations::REPLACE_LOST_KEY, name);
            let first = validate(&world.settings, &world.observed).unwrap();
            assert_eq!(first.certificates.key_wish, Wish::UnderWay, "{name} {says}");
            let round = world.settle();
            let after = world.live(Kind::Secret, name).unwrap();
            assert_ne!(backup["data"], after["data"], "{name} {says}");
            assert!(world.holds(ConditionType::CertificatesReady));
            assert_eq!(round.plan.answered, Some(annotations::REPLACE_LOST_KEY));
            let pods = ObjectKey::new(Kind::Deployment, "tenants", "t1");
            let old = others.iter().find(|(key, _)| *key == pods).unwrap();
            assert_ne!(
                old.1["spec"], world.observed.live.0[&pods]["spec"],
                "new pods"
            );
        }
    }
}

#[test]
fn a_wish_for_a_new_key_does_not_lie_in_wait() {
    let mut world = settled();
    let before = world.observed.live.0[&key("t1-ca")].clone();
    world.annotate(annotations::REPLACE_LOST_KEY, "t1-ca");
    let round = world.settle();
    assert_eq!(round.plan.answered, Some(annotations::REPLACE_LOST_KEY));
    assert_eq!(before, world.observed.live.0[&key("t1-ca")]);
}

#[test]
fn one_good_copy_of_an_authority_is_enough() {
    let mut world = settled();
    let other = another().observed.live.0[&key("t1-ca")]["data"].clone();
    let ca = world.observed.live.get_mut(&key("t1-ca")).unwrap();
    let good = ca["data"].clone();
    ca["data"]["ca.crt"] = other["ca.crt"].clone();
    ca["data"]["ca.key"] = other["ca.key"].clone();
    world.settle();
    assert_eq!(world.live(Kind::Secret, "t1-ca").unwrap()["data"], good);
}

#[test]
fn anything_made_with_keys_shows_that_they_were_there() {
    let world = settled();
    let made: Vec<_> = world
        .observed
        .live
        .0
        .keys()
        .filter(|other| !KEYS.iter().any(|(name, _)| **other == key(name)))
        .cloned()
        .collect();
    for witness in made {
        let shows = witness.kind == Kind::Deployment
            || witness.kind == Kind::Secret && !witness.name.contains("datastore");
        let mut alone = World::new(PLAIN);
        let body = world.observed.live.0[&witness].as_ref().clone();
        alone.observed.live.insert(witness.clone(), body);
        let lost = validate(&alone.settings, &alone.observed).is_err_and(|problems| {
            problems.len() == 3 && problems.iter().all(|p| p.reason == Reason::KeyLost)
        });
        assert_eq!(lost, shows, "{witness}");
    }
}

#[test]
fn a_creation_that_was_interrupted_among_the_keys_goes_on() {
    let whole = settled();
    for (name, _) in KEYS {
        let mut world = World::new(PLAIN);
        let body = whole.observed.live.0[&key(name)].as_ref().clone();
        let data = body["data"].clone();
        world.observed.live.insert(key(name), body);
        world.settle();
        assert_eq!(
            world.live(Kind::Secret, name).unwrap()["data"],
            data,
            "{name}"
        );
        assert!(world.holds(ConditionType::Available));
    }
}

#[test]
fn keys_are_written_before_all_that_is_made_with_them() {
    let mut world = World::new(PLAIN);
    let round = world.round();
    let keys: Vec<&str> = round
        .plan
        .objects
        .iter()
        .filter(|object| object.stage == Stage::Keys)
        .map(|object| object.key.name.as_str())
        .collect();
    assert_eq!(keys, KEYS.map(|(name, _)| name));
    assert!(Stage::Keys < Stage::Pki && Stage::Pki < Stage::Config);
    let read = named_secrets(&world.observed.tenant);
    assert_eq!(read, keys, "read even without a label");
}

#[test]
fn a_key_that_could_not_be_written_was_never_there() {
    let mut world = World::new(PLAIN);
    let first = world.round();
    // As if the API server had refused everything.
    let validated = {
        world.observed.live = Live::default();
        world.observed.tenant.status = None;
        validate(&world.settings, &world.observed).unwrap()
    };
    let applied = steward_plan::Applied::default();
    let report = steward_plan::report(
        &world.settings,
        &validated,
        &world.observed,
        &first.plan,
        &applied,
    );
    assert_eq!(report.status.certificates.unwrap().ca, None);
}

#[test]
fn a_second_public_key_beside_the_first_is_a_change_of_keys() {
    let mut world = settled();
    let old = secret::data(&world.observed.live.0[&key("t1-sa-certificate")]);
    let new = secret::data(&another().observed.live.0[&key("t1-sa-certificate")]);
    let encode = |text: String| {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        json!(STANDARD.encode(text))
    };
    let live = world
        .observed
        .live
        .get_mut(&key("t1-sa-certificate"))
        .unwrap();
    live["data"]["sa.key"] = encode(new["sa.key"].clone());
    live["data"]["sa.pub"] = encode(format!("{}{}", new["sa.pub"], old["sa.pub"]));
    world.settle();
    assert!(world.holds(ConditionType::CertificatesReady));
}

#[test]
fn somebody_else_s_secret_is_no_key_of_ours() {
    for (name, _) in KEYS {
        let mut world = World::new(PLAIN);
        let mut body = settled().observed.live.0[&key(name)].as_ref().clone();
        let metadata = body["metadata"].as_object_mut().unwrap();
        metadata.remove("ownerReferences");
        world.observed.live.insert(key(name), body.clone());
        let problems = validate(&world.settings, &world.observed).unwrap_err();
        assert_eq!(problems[0].reason, Reason::ObjectNotOurs);
        let text = problems[0].to_string();
        let offer =
            format!("kubectl annotate secret -n tenants {name} steward.butlerlabs.dev/adopt=t1");
        assert!(text.contains(&offer), "{text}");

        body["metadata"]["annotations"][annotations::ADOPT] = json!("t1");
        world.observed.live.insert(key(name), body.clone());
        world.settle();
        let now = world.live(Kind::Secret, name).unwrap();
        assert_eq!(now["data"], body["data"], "{name} is used as it is");
    }
}

#[test]
fn a_status_of_another_maker_stops_nobody() {
    let mut world = settled();
    let status = world.observed.tenant.status.as_mut().unwrap();
    status.conditions.clear();
    let sa = status.certificates.as_mut().unwrap().sa.as_mut().unwrap();
    sa.checksum = Some("0123456789abcdef0123456789abcdef".into());
    assert_eq!(world.settle().writes, 0);
    let ca = secret::data(&world.observed.live.0[&key("t1-ca")]);
    assert!(inspect(&ca["ca.crt"]).unwrap().is_ca);
}
