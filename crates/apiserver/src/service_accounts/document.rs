//! What others need to verify tokens by themselves: who issues them, and the public keys.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::AccountTokens;

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

impl AccountTokens {
    /// Whether there is something under this path. An issuer that is no HTTPS URL cannot be found by others.
    pub(crate) fn serves(&self, path: &str) -> bool {
        matches!(path.trim_end_matches('/'), CONFIGURATION | KEYS) && self.issuer.starts_with("https://")
    }
}

impl AccountTokens {
    /// The document under a path that is [served](Self::serves), and its media type. Nothing in it comes from the request: others
    /// keep it. The address is where others reach this server.
    pub(crate) fn document(&self, path: &str, address: Option<SocketAddr>) -> (Value, &'static str) {
        if path.trim_end_matches('/') == KEYS {
            let keys: Vec<&Value> = self.verifiers.iter().map(|verifier| &verifier.document).collect();
            return (json!({"keys": keys}), "application/jwk-set+json");
        }
        let mut algorithms: Vec<&str> =
            self.verifiers.iter().map(|verifier| verifier.algorithm.name()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let document = json!({
            "issuer": self.issuer,
            "jwks_uri": self.keys_uri(address),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        });
        (document, "application/json")
    }

    /// Where the keys are: as configured, or at the address of this server, or, as long as it has none that others could
    /// use, below the issuer.
    fn keys_uri(&self, address: Option<SocketAddr>) -> String {
        match (&self.keys_uri, address.filter(|address| !address.ip().is_unspecified())) {
            (Some(uri), _) => uri.clone(),
            (None, Some(address)) => format!("https://{address}{KEYS}"),
            (None, None) => format!("{}{KEYS}", self.issuer.trim_end_matches('/')),
        }
    }
}
