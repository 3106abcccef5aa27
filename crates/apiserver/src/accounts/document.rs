//! What others need to verify tokens by themselves: who issues them, and the public keys.

use serde_json::{Value, json};

use super::AccountTokens;
use crate::dispatch::Call;
use crate::reply::Reply;

const CONFIGURATION: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

impl AccountTokens {
    /// Whether there is something under this path. An issuer that is no HTTPS URL cannot be found by others.
    pub(crate) fn serves(&self, path: &str) -> bool {
        matches!(path.trim_end_matches('/'), CONFIGURATION | KEYS) && self.issuer.starts_with("https://")
    }

    pub(crate) fn document(&self, call: &Call, path: &str) -> Reply {
        let reply = match path.trim_end_matches('/') {
            KEYS => {
                let keys: Vec<&Value> = self.verifiers.iter().map(|verifier| &verifier.document).collect();
                Reply::json(200, &json!({"keys": keys})).typed("application/jwk-set+json")
            }
            _ => {
                let host = call.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
                let mut algorithms: Vec<&str> =
                    self.verifiers.iter().map(|verifier| verifier.algorithm.name()).collect();
                algorithms.sort_unstable();
                algorithms.dedup();
                Reply::json(
                    200,
                    &json!({
                        "issuer": self.issuer,
                        "jwks_uri": format!("https://{}{KEYS}", host.unwrap_or("localhost")),
                        "response_types_supported": ["id_token"],
                        "subject_types_supported": ["public"],
                        "id_token_signing_alg_values_supported": algorithms,
                    }),
                )
            }
        };
        reply.header("cache-control", "public, max-age=3600")
    }
}
