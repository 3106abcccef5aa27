//! What others need to verify tokens by themselves: who issues them, and the public keys.

use serde_json::{Value, json};

use super::AccountTokens;
use crate::reply::Reply;
use crate::server::Server;

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

impl AccountTokens {
    /// Whether there is something under this path. An issuer that is no HTTPS URL cannot be found by others.
    pub(crate) fn serves(&self, path: &str) -> bool {
        matches!(path.trim_end_matches('/'), CONFIGURATION | KEYS) && self.issuer.starts_with("https://")
    }
}

impl Server {
    /// The document under a path that [`AccountTokens::serves`]. Nothing in it comes from the request: others keep it.
    pub(crate) fn account_document(&self, path: &str) -> Reply {
        let AccountTokens { issuer, verifiers, .. } = &self.accounts;
        let reply = match path.trim_end_matches('/') {
            KEYS => {
                let keys: Vec<&Value> = verifiers.iter().map(|verifier| &verifier.document).collect();
                Reply::json(200, &json!({"keys": keys})).typed("application/jwk-set+json")
            }
            _ => {
                let mut algorithms: Vec<&str> =
                    verifiers.iter().map(|verifier| verifier.algorithm.name()).collect();
                algorithms.sort_unstable();
                algorithms.dedup();
                Reply::json(
                    200,
                    &json!({
                        "issuer": issuer,
                        "jwks_uri": self.keys_uri(),
                        "response_types_supported": ["id_token"],
                        "subject_types_supported": ["public"],
                        "id_token_signing_alg_values_supported": algorithms,
                    }),
                )
            }
        };
        reply.header("cache-control", "public, max-age=3600")
    }

    /// Where the keys are: as configured, or at the address of this server, or, as long as it has none that others could
    /// use, below the issuer.
    fn keys_uri(&self) -> String {
        let address = self.address.lock().filter(|address| !address.ip().is_unspecified());
        match (&self.accounts.keys_uri, address) {
            (Some(uri), _) => uri.clone(),
            (None, Some(address)) => format!("https://{address}{KEYS}"),
            (None, None) => format!("{}{KEYS}", self.accounts.issuer.trim_end_matches('/')),
        }
    }
}
