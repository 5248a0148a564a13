//! Reading and writing the data of Secrets as text.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{object::Kind, observed::Live};

/// The data of a Secret as text; what isn't text is left out. `None` if there is no such
/// Secret.
pub fn read(live: &Live, namespace: &str, name: &str) -> Option<BTreeMap<String, String>> {
    live.get(Kind::Secret, namespace, name).map(data)
}

/// The data of a Secret's body as text.
pub fn data(secret: &Value) -> BTreeMap<String, String> {
    let Some(Value::Object(data)) = secret.get("data") else {
        return BTreeMap::new();
    };
    data.iter()
        .filter_map(|(key, value)| {
            let bytes = BASE64.decode(value.as_str()?).ok()?;
            Some((key.clone(), String::from_utf8(bytes).ok()?))
        })
        .collect()
}

/// Text as the data of a Secret's body.
pub(crate) fn encoded(data: &BTreeMap<String, String>) -> BTreeMap<&str, String> {
    data.iter()
        .map(|(key, text)| (key.as_str(), BASE64.encode(text)))
        .collect()
}

/// A short, stable name for content.
pub fn checksum(content: &impl serde::Serialize) -> String {
    let bytes = serde_json::to_vec(content).unwrap_or_default();
    hex::encode(&Sha256::digest(&bytes)[..16])
}
