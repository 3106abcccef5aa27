//! Go's standard library, where its exact behaviour is part of the API of Kubernetes.
//!
//! Clients compare messages that Go's `fmt`, `strconv`, `time` and `encoding/json` make on the other side, and objects hold
//! times, durations, addresses and bytes as Go writes them. One module per subject:
//!
//! - [`mod@quote`]: `%q` and escapes in quoted strings;
//! - [`fmt`]: values as `%v` and `%#v` print them;
//! - [`json`]: values as `encoding/json` writes them, and its words for bytes that are not JSON;
//! - [`Time`]: moments in RFC 3339, on the one [`calendar`];
//! - [`duration`]: durations such as `1h30m`;
//! - [`address`]: IP addresses and blocks of them, with the leading zeros that Kubernetes tolerates;
//! - [`base64`].
//!
//! Everything here is a pure function. No input makes this crate panic. The files under `cases/` hold the answers of Go 1.26
//! and of `k8s.io/utils`.

pub mod address;
pub mod base64;
pub mod calendar;
pub mod duration;
pub mod fmt;
pub mod json;
pub mod quote;
mod time;

pub use quote::quote;
pub use time::Time;

/// The recorded answers in one file: a JSON object per line.
#[cfg(test)]
fn recorded(lines: &str) -> Vec<serde_json::Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How many cases a property test runs: `normal`, unless `WATCHKEEPER_CASES` says otherwise.
#[cfg(test)]
fn cases(normal: u32) -> u32 {
    let asked = std::env::var("WATCHKEEPER_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(normal)
}
