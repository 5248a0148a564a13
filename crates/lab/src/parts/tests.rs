//! What is promised of parts without making one.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::mpsc, thread};

use super::{recipe::Go, *};

fn options(folder: &Path) -> Options {
    Options {
        bin_dir: None,
        cache: folder.join("cache"),
        search_path: OsString::new(),
    }
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn go(recipe: &mut Recipe) -> &mut Go {
    match &mut recipe.origin {
        Origin::Go(go) => go,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_hash_changes_with_every_input_and_with_nothing_else() {
    let same = Recipe::of(Part::Etcd).hash();
    assert_eq!(same, Recipe::of(Part::Etcd).hash());
    let changed = |change: fn(&mut Recipe)| {
        let mut recipe = Recipe::of(Part::Etcd);
        change(&mut recipe);
        recipe.hash()
    };
    assert_ne!(same, changed(|r| r.version = "3.6.9"));
    assert_ne!(same, changed(|r| go(r).tags = "nats"));
    assert_ne!(same, changed(|r| go(r).variables = &[("a", "b")]));
    assert_ne!(same, changed(|r| go(r).files = &[("go.mod", "module x")]));
    assert_eq!(same, changed(|r| r.room = 1));
}

#[test]
fn the_hash_tells_apart_inputs_that_are_alike_when_joined() {
    let hash = |files| {
        let mut recipe = Recipe::of(Part::Etcd);
        go(&mut recipe).files = files;
        recipe.hash()
    };
    assert_ne!(hash(&[("a", "bc")]), hash(&[("ab", "c")]));
}

#[test]
fn every_part_is_found_by_its_name_and_no_two_share_one() {
    for part in Part::ALL {
        assert_eq!(part.name().parse::<Part>().unwrap(), part);
    }
    let mut names = Part::ALL.map(Part::name);
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(
        "kubernetes".parse::<Part>().unwrap(),
        Part::Kubernetes(Release::V1_36)
    );
}

#[test]
fn an_unknown_part_and_an_unknown_release_get_the_list_of_those_there_are() {
    let sentence = "postgres".parse::<Part>().unwrap_err().to_string();
    assert!(sentence.contains("etcd, konnectivity"), "{sentence}");
    let sentence = "kubernetes-1.12".parse::<Part>().unwrap_err().to_string();
    assert!(sentence.contains("1.36.3, 1.35.4, 1.34.4"), "{sentence}");
}

#[test]
fn the_modules_pin_the_version_that_the_recipe_names() {
    for (part, line) in [
        (
            Part::Kubernetes(Release::V1_36),
            "k8s.io/kubernetes v1.36.3",
        ),
        (
            Part::Kubernetes(Release::V1_35),
            "k8s.io/kubernetes v1.35.4",
        ),
        (
            Part::Kubernetes(Release::V1_34),
            "k8s.io/kubernetes v1.34.4",
        ),
        (
            Part::Kubernetes(Release::V1_33),
            "k8s.io/kubernetes v1.33.0",
        ),
        (
            Part::Kubernetes(Release::V1_32),
            "k8s.io/kubernetes v1.32.0",
        ),
        (
            Part::Kubernetes(Release::V1_31),
            "k8s.io/kubernetes v1.31.0",
        ),
        (Part::Etcd, "go.etcd.io/etcd/server/v3 v3.6.16"),
        (
            Part::Konnectivity,
            "sigs.k8s.io/apiserver-network-proxy v0.36.0",
        ),
        (Part::CoreDns, "github.com/coredns/coredns v1.14.2"),
        (Part::Helm, "helm.sh/helm/v4 v4.3.1"),
        (Part::Kine, "github.com/k3s-io/kine v0.13.9"),
        (
            Part::HaproxyIngress,
            "github.com/jcmoraisjr/haproxy-ingress v0.14.0",
        ),
    ] {
        let mut recipe = Recipe::of(part);
        let text = go(&mut recipe).files[0].1;
        assert!(text.contains(line), "{part}");
        assert!(line.ends_with(part.version()), "{part}");
    }
}

#[test]
fn programs_of_the_right_version_in_the_chosen_folder_skip_the_build() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["etcd", "etcdctl", "etcdutl"] {
        script(&folder.path().join(name), "echo version: 3.6.16");
    }
    let options = options(folder.path()).with_bin_dir(Some(folder.path().to_path_buf()));
    let programs = ensure(Part::Etcd, &options, &Progress::silent()).unwrap();
    assert_eq!(
        programs.path("etcdctl").unwrap(),
        folder.path().join("etcdctl")
    );
    let sentence = programs.path("kubectl").unwrap_err().to_string();
    assert!(sentence.contains("etcd, etcdctl, etcdutl"), "{sentence}");
}

#[test]
fn one_folder_can_hold_two_releases_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("kubernetes-1.35");
    fs::create_dir(&own).unwrap();
    for program in Recipe::of(Part::Kubernetes(Release::V1_35)).programs {
        script(&folder.path().join(program.name), "echo Kubernetes v1.31.0");
        script(&own.join(program.name), "echo Kubernetes v1.35.4");
    }
    let options = options(folder.path()).with_bin_dir(Some(folder.path().to_path_buf()));
    let path = |release| {
        let programs = ensure(Part::Kubernetes(release), &options, &Progress::silent()).unwrap();
        programs.path("kube-apiserver").unwrap().to_path_buf()
    };
    assert_eq!(path(Release::V1_35), own.join("kube-apiserver"));
    assert_eq!(path(Release::V1_31), folder.path().join("kube-apiserver"));
}

#[test]
fn a_program_of_another_version_on_the_path_is_refused_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    script(&folder.path().join("helm"), "echo v3.14.0+gabcdef0");
    assert!(found::on_path(folder.path().as_os_str(), &Recipe::of(Part::Helm)).is_none());
    script(&folder.path().join("helm"), "echo v4.3.1+gabcdef0");
    assert!(found::on_path(folder.path().as_os_str(), &Recipe::of(Part::Helm)).is_some());
}

#[test]
fn a_chosen_folder_that_is_none_gets_a_sentence() {
    let options = options(Path::new("/tmp")).with_bin_dir(Some("/nonexistent".into()));
    let error = ensure(Part::Etcd, &options, &Progress::silent()).unwrap_err();
    assert!(
        error.to_string().contains("--bin-dir /nonexistent"),
        "{error}"
    );
}

#[test]
fn a_part_in_the_cache_is_used_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let name = format!("crds-{}", Part::Crds.fingerprint());
    let share = options.cache.join("parts").join(name).join("share");
    fs::create_dir_all(&share).unwrap();
    let programs = ensure(Part::Crds, &options, &Progress::silent()).unwrap();
    assert_eq!(programs.share(), Some(share.as_path()));
}

#[test]
fn a_disk_that_is_too_full_is_told_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let item = Item {
        label: "kubernetes 1.36.3",
        name: "kubernetes-1.36-0",
        room: u64::MAX,
    };
    let error = Cache::new(folder.path())
        .make(&item, &Progress::silent(), |_, _| {
            panic!("must not be called")
        })
        .unwrap_err();
    assert!(matches!(error, Error::Disk { .. }), "{error}");
    assert!(error.to_string().contains("STEWARD_CACHE"), "{error}");
}

#[test]
fn a_build_that_fails_leaves_nothing_that_looks_like_a_part() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let item = Item {
        label: "x",
        name: "x-0",
        room: 0,
    };
    let failed = cache.make(&item, &Progress::silent(), |stage, _| {
        fs::create_dir(stage.join("bin")).unwrap();
        Err(Error::NoCache)
    });
    assert!(failed.is_err());
    assert!(cache.get("x-0").is_none());
    assert!(!folder.path().join("parts/.x-0.making").exists());
}

#[test]
fn two_that_ask_for_the_same_part_make_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let item = Item {
        label: "x",
        name: "x-0",
        room: 0,
    };
    let (building, wait) = mpsc::channel();
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            cache.make(&item, &Progress::silent(), |stage, _| {
                building.send(()).unwrap();
                fs::create_dir(stage.join("bin")).map_err(error::io("create", stage))
            })
        });
        wait.recv().unwrap();
        let second = cache.make(&item, &Progress::silent(), |_, _| panic!("made twice"));
        assert_eq!(first.join().unwrap().unwrap(), second.unwrap());
    });
}

#[test]
fn a_build_cache_somebody_uses_is_not_trimmed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let (go_build, held) = cache.go_build().unwrap();
    // A sparse file weighs as much as it says without taking the disk.
    let large = fs::File::create(go_build.join("large")).unwrap();
    large.set_len(2 << 30).unwrap();
    cache.trim_go_build(&Progress::silent());
    assert!(go_build.exists());
    drop(held);
    cache.trim_go_build(&Progress::silent());
    assert!(!go_build.exists());
}
