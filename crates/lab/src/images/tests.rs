//! What is promised of images, on small files and without parts.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::*;

/// A small image made from scratch: nothing but its inputs may show in it.
fn image(folder: &Path) -> Image {
    let program = folder.join("program");
    if !program.exists() {
        fs::write(&program, "#!/bin/sh\necho hello\n").unwrap();
    }
    Image::builder("steward.lab/hello:1")
        .tag("steward.lab/hello:latest")
        .file(&program, "/usr/bin/hello", 0o755)
        .link("/bin/hello", "../usr/bin/hello")
        .text("greeting=hello\n", "/etc/hello.conf", 0o644)
        .folder("/tmp", 0o1777)
        .entrypoint(["/usr/bin/hello"])
        .user("65532")
        .build()
        .unwrap()
}

fn entries(archive: &Path, layer: &str) -> BTreeMap<String, (u32, u64, u64)> {
    let mut outer = tar::Archive::new(fs::File::open(archive).unwrap());
    let mut text = Vec::new();
    for entry in outer.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().to_string_lossy() == layer {
            entry.read_to_end(&mut text).unwrap();
        }
    }
    let mut inner = tar::Archive::new(text.as_slice());
    let describe = |entry: tar::Entry<'_, &[u8]>| {
        let header = entry.header();
        let path = entry.path().unwrap().to_string_lossy().into_owned();
        let about = (
            header.mode().unwrap(),
            header.uid().unwrap(),
            header.mtime().unwrap(),
        );
        (path, about)
    };
    inner
        .entries()
        .unwrap()
        .map(|e| describe(e.unwrap()))
        .collect()
}

#[test]
fn the_same_inputs_give_the_same_bytes_whenever_and_wherever_they_lie() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = image(here.path())
        .write(&here.path().join("a.tar"))
        .unwrap();
    // Another folder, another time of change, another mode of the source.
    let program = there.path().join("program");
    fs::write(&program, "#!/bin/sh\necho hello\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o600)).unwrap();
    let second = image(there.path())
        .write(&there.path().join("b.tar"))
        .unwrap();
    assert_eq!(first.images, second.images);
    assert_eq!(
        fs::read(&first.path).unwrap(),
        fs::read(&second.path).unwrap()
    );
}

#[test]
fn another_byte_gives_another_digest() {
    let folder = tempfile::tempdir().unwrap();
    let first = image(folder.path())
        .write(&folder.path().join("a.tar"))
        .unwrap();
    fs::write(folder.path().join("program"), "#!/bin/sh\necho hellp\n").unwrap();
    let second = image(folder.path())
        .write(&folder.path().join("b.tar"))
        .unwrap();
    assert_ne!(first.images[0].digest, second.images[0].digest);
}

#[test]
fn a_layer_holds_its_folders_before_its_files_and_no_times() {
    let folder = tempfile::tempdir().unwrap();
    let archive = image(folder.path())
        .write(&folder.path().join("a.tar"))
        .unwrap();
    let entries = entries(&archive.path, "layers/0.tar");
    let names: Vec<_> = entries.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "bin/",
            "bin/hello",
            "etc/",
            "etc/hello.conf",
            "tmp/",
            "usr/",
            "usr/bin/",
            "usr/bin/hello",
        ]
    );
    assert_eq!(entries["usr/bin/hello"], (0o755, 0, 0));
    assert_eq!(entries["tmp/"], (0o1777, 0, 0));
}

#[test]
fn what_was_written_is_what_inspection_finds() {
    let folder = tempfile::tempdir().unwrap();
    let written = image(folder.path())
        .write(&folder.path().join("a.tar"))
        .unwrap();
    let found = inspect(&written.path).unwrap();
    assert_eq!(found, written);
    assert_eq!(
        found.images[0].names,
        ["steward.lab/hello:1", "steward.lab/hello:latest"]
    );
}

#[test]
fn images_that_share_a_layer_carry_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let large = vec![7; 300_000];
    let layer = Arc::new(Layer::default().text(large, "/program", 0o755));
    let image = |name: &str| Image::builder(name).layer(&layer).build().unwrap();
    let images = [image("steward.lab/a:1"), image("steward.lab/b:1")];
    let archive = write(&images, &folder.path().join("both.tar")).unwrap();
    let size = fs::metadata(&archive.path).unwrap().len();
    assert!(size < 400_000, "{size}");
    assert_eq!(inspect(&archive.path).unwrap().images.len(), 2);
}

#[test]
fn an_archive_is_kept_until_an_input_changes() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("images");
    let first = cached(&[image(folder.path())], "hello", &keep).unwrap();
    let again = cached(&[image(folder.path())], "hello", &keep).unwrap();
    assert_eq!(first, again);
    fs::write(folder.path().join("program"), "something else").unwrap();
    let other = cached(&[image(folder.path())], "hello", &keep).unwrap();
    assert_ne!(first.path, other.path);
    assert_eq!(fs::read_dir(&keep).unwrap().count(), 2);
}

#[test]
fn an_archive_of_last_week_goes_when_a_new_one_comes() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("images");
    let first = cached(&[image(folder.path())], "hello", &keep).unwrap();
    fs::write(keep.join("hello-world-0.tar"), "another").unwrap();
    for path in [&first.path, &keep.join("hello-world-0.tar")] {
        let last_week = SystemTime::now() - Duration::from_hours(7 * 24);
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(last_week).unwrap();
    }
    fs::write(folder.path().join("program"), "something else").unwrap();
    let second = cached(&[image(folder.path())], "hello", &keep).unwrap();
    assert!(!first.path.exists());
    assert!(second.path.exists());
    assert!(keep.join("hello-world-0.tar").exists());
}

#[test]
fn what_is_not_an_image_gets_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let good = image(folder.path())
        .write(&folder.path().join("good.tar"))
        .unwrap();
    let bytes = fs::read(&good.path).unwrap();
    let mut plain_tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(2);
    header.set_cksum();
    plain_tar
        .append_data(&mut header, "a.txt", &b"hi"[..])
        .unwrap();
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("empty", Vec::new(), "it is empty"),
        (
            "garbage",
            b"this is no tar file at all".repeat(100),
            "not a tar file",
        ),
        ("gzip", vec![0x1f, 0x8b, 8, 0, 0, 0], "gunzip"),
        ("cut", bytes[..1024].to_vec(), "cut off"),
        (
            "tar",
            plain_tar.into_inner().unwrap(),
            "neither manifest.json",
        ),
        ("zeros", vec![0; 4096], "neither manifest.json"),
    ];
    for (name, content, why) in cases {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let sentence = inspect(&path).unwrap_err().to_string();
        assert!(sentence.contains("is not a container image"), "{sentence}");
        assert!(sentence.contains(why), "{name}: {sentence}");
    }
    let missing = inspect(&folder.path().join("nowhere.tar")).unwrap_err();
    assert!(missing.to_string().contains("nowhere.tar"), "{missing}");
}

#[test]
fn a_manifest_that_promises_more_than_the_archive_holds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = br#"[{"Config":"c.json","RepoTags":["a.b/c:1"],"Layers":["gone.tar"]}]"#;
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(manifest.len() as u64);
    header.set_cksum();
    tar.append_data(&mut header, "manifest.json", &manifest[..])
        .unwrap();
    let path = folder.path().join("x.tar");
    fs::write(&path, tar.into_inner().unwrap()).unwrap();
    let sentence = inspect(&path).unwrap_err().to_string();
    assert!(sentence.contains("gone.tar is not in it"), "{sentence}");
}

#[test]
fn a_name_that_no_node_could_resolve_is_refused() {
    for name in [
        "pause",
        "registry.k8s.io/pause",
        "Registry.k8s.io/pause:1",
        "a.b//c:1",
        "a.b/c:",
        "a.b/c:x y",
        "library/nginx:1",
    ] {
        let error = Image::builder(name).build().unwrap_err();
        assert!(matches!(error, Error::Name { .. }), "{name}");
    }
    for name in [
        "registry.k8s.io/coredns/coredns:v1.14.2",
        "localhost:5000/x:1",
    ] {
        assert!(Image::builder(name).build().is_ok(), "{name}");
    }
}

#[test]
fn our_own_program_is_the_entrypoint_and_does_not_run_as_root() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("built");
    fs::write(&program, "static").unwrap();
    let image = ours(&program, "ghcr.io/butlerdotdev/steward-gate:v0.1.0").unwrap();
    assert_eq!(image.config["config"]["Entrypoint"][0], "/steward-gate");
    assert_eq!(image.config["config"]["User"], "65532:65532");
    let archive = image.write(&folder.path().join("a.tar")).unwrap();
    assert!(entries(&archive.path, "layers/0.tar").contains_key("steward-gate"));
}

#[test]
fn packing_writes_one_archive_per_program_and_names_the_one_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out/images");
    let error = pack(folder.path(), &output).unwrap_err();
    assert!(error.to_string().contains("steward-operator"), "{error}");
    for program in OURS {
        fs::write(folder.path().join(program), program).unwrap();
    }
    let archives = pack(folder.path(), &output).unwrap();
    assert_eq!(archives.len(), OURS.len());
    let gate = inspect(&output.join("steward-gate.tar")).unwrap();
    assert_eq!(gate.images[0].names, [name_of("steward-gate")]);
}

#[test]
fn every_item_of_the_catalogue_is_found_by_its_name() {
    for item in catalogue::Item::ALL {
        assert_eq!(item.to_string().parse::<catalogue::Item>().unwrap(), item);
    }
}
