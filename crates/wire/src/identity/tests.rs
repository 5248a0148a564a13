//! Files that are right, wrong, rotated in both ways that Kubernetes knows, and caught half-way.

use std::{fs, os::unix::fs::symlink, path::Path};

use tempfile::TempDir;

use super::{
    testing::{Authority, Pair},
    *,
};

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// As a careful program replaces a file.
    fn replace(&self, name: &str, content: &str) {
        let new = self.write("new", content);
        fs::rename(new, self.path(name)).unwrap();
    }

    fn write_pair(&self, pair: &Pair) -> (PathBuf, PathBuf) {
        (
            self.write("tls.crt", &pair.cert),
            self.write("tls.key", &pair.key),
        )
    }
}

fn open(cert: &Path, key: &Path) -> Result<(std::sync::Arc<ServerIdentity>, Followed), Error> {
    ServerIdentity::open(cert, key)
}

/// What the identity answers with now.
fn serving(identity: &ServerIdentity) -> String {
    format!("{:?}", identity.current_chain())
}

#[test]
fn a_pair_is_read() {
    let place = Place::new();
    let (cert, key) = place.write_pair(&Authority::new("ca").issue("a.example"));
    assert!(open(&cert, &key).is_ok());
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let place = Place::new();
    let authority = Authority::new("ca");
    let (cert, key) = place.write_pair(&authority.issue("a.example"));
    let other = place.write("other.key", &authority.issue("b.example").key);
    let empty = place.write("empty", "");
    let broken = place.write(
        "broken",
        "-----BEGIN CERTIFICATE-----\nno!\n-----END CERTIFICATE-----\n",
    );
    let missing = place.path("missing");
    let sentences = [
        (&missing, &key, "missing: can't be read"),
        (&cert, &missing, "missing: can't be read"),
        (&empty, &key, "empty: holds no certificate"),
        (&key, &key, "tls.key: holds no certificate"),
        (&broken, &key, "broken: is not a PEM file"),
        (&cert, &empty, "empty: holds no private key"),
        (&cert, &cert, "tls.crt: holds no private key"),
        (&cert, &other, "tls.crt: does not belong to the key in"),
    ];
    for (cert, key, sentence) in sentences {
        let error = open(cert, key).unwrap_err().to_string();
        assert!(
            error.contains(sentence),
            "{error} should contain {sentence}"
        );
    }
}

#[test]
fn a_ca_file_without_a_certificate_is_refused() {
    let place = Place::new();
    let ca = place.write("ca.crt", "# nothing here\n");
    let error = Trust::open(&ca).unwrap_err().to_string();
    assert!(error.contains("ca.crt: holds no certificate"), "{error}");
    let ca = place.write("ca.crt", &Authority::new("ca").pem());
    assert!(Trust::open(&ca).is_ok());
}

#[test]
fn a_renamed_pair_is_taken_over() {
    let place = Place::new();
    let authority = Authority::new("ca");
    let (cert, key) = place.write_pair(&authority.issue("a.example"));
    let (identity, mut followed) = open(&cert, &key).unwrap();
    let counts = Counts::default();
    followed.look(&counts);
    let before = serving(&identity);
    assert_eq!(counts.reloads(), 0);

    let new = authority.issue("a.example");
    place.replace("tls.crt", &new.cert);
    followed.look(&counts);
    assert_eq!(serving(&identity), before, "half a pair is not served");
    assert_eq!(counts.failures(), 0, "and not yet complained about");
    place.replace("tls.key", &new.key);
    followed.look(&counts);
    assert_ne!(serving(&identity), before);
    assert_eq!((counts.reloads(), counts.failures()), (1, 0));
}

#[test]
fn a_swapped_secret_volume_is_taken_over() {
    let place = Place::new();
    let authority = Authority::new("ca");
    for (version, dir) in ["..1", "..2"].iter().enumerate() {
        let pair = authority.issue(&format!("v{version}.example"));
        fs::create_dir(place.path(dir)).unwrap();
        fs::write(place.path(dir).join("tls.crt"), pair.cert).unwrap();
        fs::write(place.path(dir).join("tls.key"), pair.key).unwrap();
    }
    symlink("..1", place.path("..data")).unwrap();
    symlink("..data/tls.crt", place.path("tls.crt")).unwrap();
    symlink("..data/tls.key", place.path("tls.key")).unwrap();
    let (identity, mut followed) = open(&place.path("tls.crt"), &place.path("tls.key")).unwrap();
    let counts = Counts::default();
    followed.look(&counts);
    let before = serving(&identity);

    symlink("..2", place.path("..data_tmp")).unwrap();
    fs::rename(place.path("..data_tmp"), place.path("..data")).unwrap();
    followed.look(&counts);
    assert_ne!(serving(&identity), before);
    assert_eq!(counts.reloads(), 1);
}

#[test]
fn a_broken_new_file_keeps_the_old_and_is_told_once() {
    let place = Place::new();
    let authority = Authority::new("ca");
    let pair = authority.issue("a.example");
    let (cert, key) = place.write_pair(&pair);
    let (identity, mut followed) = open(&cert, &key).unwrap();
    let counts = Counts::default();
    let before = serving(&identity);
    place.replace("tls.crt", "rubbish");
    for _ in 0..5 {
        followed.look(&counts);
    }
    assert_eq!((counts.reloads(), counts.failures()), (0, 1));
    assert_eq!(serving(&identity), before);

    fs::remove_file(&cert).unwrap();
    for _ in 0..5 {
        followed.look(&counts);
    }
    assert_eq!(counts.failures(), 2);

    let new = authority.issue("a.example");
    place.replace("tls.key", &new.key);
    place.replace("tls.crt", &new.cert);
    followed.look(&counts);
    assert_eq!((counts.reloads(), counts.failures()), (1, 2));
    assert_ne!(serving(&identity), before);
}

#[test]
fn files_that_come_back_as_they_were_are_no_news() {
    let place = Place::new();
    let pair = Authority::new("ca").issue("a.example");
    let (cert, key) = place.write_pair(&pair);
    let (_, mut followed) = open(&cert, &key).unwrap();
    let counts = Counts::default();
    fs::remove_file(&cert).unwrap();
    followed.look(&counts);
    place.replace("tls.crt", &pair.cert);
    for _ in 0..3 {
        followed.look(&counts);
    }
    assert_eq!((counts.reloads(), counts.failures()), (0, 0));
}

#[test]
fn a_new_ca_is_believed_by_the_next_connection() {
    let place = Place::new();
    let ca = place.write("ca.crt", &Authority::new("one").pem());
    let (trust, mut followed) = Trust::open(&ca).unwrap();
    let counts = Counts::default();
    let before = trust.client_config();
    place.replace("ca.crt", &Authority::new("two").pem());
    followed.look(&counts);
    assert_eq!(counts.reloads(), 1);
    assert!(!std::sync::Arc::ptr_eq(&before, &trust.client_config()));
}

#[test]
fn the_follower_sees_a_change_by_itself_and_stops() {
    let place = Place::new();
    let ca = place.write("ca.crt", &Authority::new("one").pem());
    let (_, files) = Trust::open(&ca).unwrap();
    let follower = Follower::start(vec![files]).unwrap();
    let counts = follower.counts();
    place.replace("ca.crt", &Authority::new("two").pem());
    while counts.reloads() == 0 {
        std::thread::yield_now();
    }
    drop(follower);
}
