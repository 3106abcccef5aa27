//! What a credential plugin is told and what it answers: `ExecCredential` of `client.authentication.k8s.io`.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use watchkeeper_core::text::bounded;
use watchkeeper_go::Time;

use super::bearer;
use crate::tls::{Identity, Pem};
use http::HeaderValue;

/// What a plugin answered.
pub(super) struct Answer {
    pub(super) authorization: Option<HeaderValue>,
    pub(super) identity: Option<Identity>,
    pub(super) expires: Option<SystemTime>,
}

/// The value of `KUBERNETES_EXEC_INFO`.
pub(super) fn question(api_version: &str, interactive: bool, cluster: Option<&Value>) -> String {
    let mut spec = Map::new();
    if let Some(cluster) = cluster {
        spec.insert("cluster".into(), cluster.clone());
    }
    spec.insert("interactive".into(), interactive.into());
    json!({"kind": "ExecCredential", "apiVersion": api_version, "spec": spec}).to_string()
}

/// Reads what a plugin printed. Errors repeat nothing of it but its version.
pub(super) fn read(output: &[u8], api_version: &str) -> Result<Answer, String> {
    let credential: Value = serde_json::from_slice(output)
        .map_err(|_| "it did not print an ExecCredential in JSON".to_owned())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if credential["kind"] != "ExecCredential" {
        return Err("it did not print an ExecCredential".to_owned());
    }
    let version = text(&credential["apiVersion"]);
    if version != api_version {
        return Err(format!("it is configured for {api_version} and answered in {:?}", bounded(&version)));
    }
    let status = &credential["status"];
    if !status.is_object() {
        return Err("it printed no status".to_owned());
    }
    let (token, certificate, key) =
        (text(&status["token"]), text(&status["clientCertificateData"]), text(&status["clientKeyData"]));
    let identity = match (certificate.is_empty(), key.is_empty()) {
        (true, true) => None,
        (false, false) => {
            let pem = |text: String| Pem::Data(text.into_bytes());
            Some(Identity { certificate: pem(certificate), key: pem(key) })
        }
        _ => return Err("it printed only one of a certificate and its key".to_owned()),
    };
    let authorization = match token.is_empty() {
        true if identity.is_none() => return Err("it printed neither a token nor a certificate".to_owned()),
        true => None,
        false => Some(bearer(&token).ok_or_else(|| super::NO_TOKEN.to_owned())?),
    };
    let expires = match &status["expirationTimestamp"] {
        Value::Null => None,
        time => {
            let time = time.as_str().and_then(|time| Time::parse(time).ok()).and_then(Time::to_system);
            Some(time.ok_or("its expirationTimestamp is not a time as in RFC 3339")?)
        }
    };
    Ok(Answer { authorization, identity, expires })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "client.authentication.k8s.io/v1";

    fn answer(status: &Value) -> Result<Answer, String> {
        let credential = json!({"kind": "ExecCredential", "apiVersion": V1, "status": status});
        read(credential.to_string().as_bytes(), V1)
    }

    #[test]
    fn a_plugin_is_told_the_version_the_mode_and_maybe_the_cluster() {
        let asked = question(V1, false, None);
        assert_eq!(
            serde_json::from_str::<Value>(&asked).unwrap(),
            json!({"kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": false}})
        );
        let cluster = json!({"server": "https://a"});
        let asked: Value = serde_json::from_str(&question(V1, true, Some(&cluster))).unwrap();
        assert_eq!(asked["spec"], json!({"interactive": true, "cluster": cluster}));
    }

    #[test]
    fn a_token_a_certificate_or_both_are_an_answer() {
        let token = answer(&json!({"token": "t", "expirationTimestamp": "2030-01-01T00:00:00Z"})).unwrap();
        assert_eq!(token.authorization.unwrap().to_str().unwrap(), "Bearer t");
        assert!(token.identity.is_none());
        assert_eq!(
            token.expires.unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(),
            1_893_456_000
        );
        let both =
            answer(&json!({"token": "t", "clientCertificateData": "c", "clientKeyData": "k"})).unwrap();
        assert!(both.authorization.is_some() && both.identity.is_some() && both.expires.is_none());
        let certificate = answer(&json!({"clientCertificateData": "c", "clientKeyData": "k"})).unwrap();
        assert!(certificate.authorization.is_none() && certificate.identity.is_some());
    }

    #[test]
    fn what_is_no_answer_is_said_without_its_content() {
        for (status, said) in [
            (json!(null), "no status"),
            (json!({}), "neither a token nor a certificate"),
            (json!({"token": "secret\n"}), ""),
            (json!({"token": "secret\u{1}x"}), "characters"),
            (json!({"clientKeyData": "secret"}), "only one"),
            (json!({"token": "secret", "expirationTimestamp": "tomorrow"}), "expirationTimestamp"),
        ] {
            match answer(&status) {
                Ok(_) => assert_eq!(said, ""),
                Err(error) => {
                    assert!(!said.is_empty() && error.contains(said) && !error.contains("secret"), "{error}");
                }
            }
        }
        assert!(read(b"secret", V1).err().unwrap().contains("JSON"));
        let older = json!({"kind": "ExecCredential", "apiVersion": "v0", "status": {"token": "secret"}});
        assert!(read(older.to_string().as_bytes(), V1).err().unwrap().contains("v0"));
        assert!(read(br#"{"kind": "Pod"}"#, V1).err().unwrap().contains("ExecCredential"));
    }
}
