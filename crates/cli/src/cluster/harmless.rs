//! Whether a tenant's kubeconfig may be used on this machine.
//!
//! Owns: what such a file may say. Users of the tenant's namespace can write the Secret that it comes from, and a
//! kubeconfig can run programs, read files and send tokens elsewhere, all in the name of the person who uses it.
//! Refuses: everything but an address, an authority, and credentials that are in the file itself.

use serde_json::Value;

const CLUSTER: [&str; 3] = ["server", "certificate-authority-data", "tls-server-name"];
const USER: [&str; 3] = ["client-certificate-data", "client-key-data", "token"];

/// What makes the file unfit for use, if anything.
pub(super) fn fault(text: &str) -> Option<String> {
    let file: Value = match serde_saphyr::from_str(text) {
        Ok(file) => file,
        Err(error) => return Some(error.to_string().lines().next()?.to_owned()),
    };
    let strange = [("clusters", "cluster", &CLUSTER), ("users", "user", &USER)]
        .into_iter()
        .find_map(|(list, item, known)| unknown(&file, list, item, known));
    strange.map(|field| {
        format!(
            "it sets {field}, which Steward never writes and which could act in your name: somebody \
             changed the Secret; delete it to have it made again"
        )
    })
}

/// A field of one of the entries that is not known to be harmless.
fn unknown(file: &Value, list: &str, item: &str, known: &[&str]) -> Option<String> {
    let entries = file[list].as_array()?.iter();
    entries
        .filter_map(|entry| entry[item].as_object())
        .flat_map(serde_json::Map::keys)
        .find(|key| !known.contains(&key.as_str()))
        .map(|key| format!("{list}[].{item}.{key}"))
}

#[cfg(test)]
mod tests {
    use super::fault;

    fn file(cluster: &str, user: &str) -> String {
        format!(
            "clusters: [{{name: t, cluster: {{server: 'https://t:6443', {cluster}}}}}]\n\
             users: [{{name: t, user: {{client-certificate-data: YQ==, {user}}}}}]\n"
        )
    }

    #[test]
    fn what_steward_writes_is_harmless() {
        let own = file("certificate-authority-data: YQ==", "client-key-data: YQ==");
        assert_eq!(fault(&own), None);
    }

    #[test]
    fn what_could_act_in_the_reader_s_name_is_not() {
        for user in [
            "exec: {command: touch}",
            "tokenFile: /var/run/secrets/token",
            "client-key: /etc/key",
            "auth-provider: {name: gcp}",
            "as: admin",
        ] {
            let said = fault(&file("tls-server-name: t", user)).expect(user);
            let field = user.split(':').next().unwrap_or_default();
            assert!(said.contains(field), "{said}");
        }
        for cluster in [
            "proxy-url: 'http://thief'",
            "insecure-skip-tls-verify: true",
            "certificate-authority: /etc/ca",
        ] {
            assert!(fault(&file(cluster, "token: a")).is_some(), "{cluster}");
        }
    }

    #[test]
    fn what_is_no_yaml_is_said_to_be_none() {
        assert!(fault("{").is_some());
    }
}
