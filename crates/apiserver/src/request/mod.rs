//! What a request asks for: its path, its query, its headers, read as kube-apiserver reads them.
//!
//! Everything here is a pure function of text. Nothing panics, and nothing takes more memory than a small multiple of its
//! input. The files under `cases/` hold what the Go packages answer to the same inputs.

mod accept;
/// No request may have a larger body, as in kube-apiserver: 3 MiB.
pub const MAX_REQUEST_BYTES: usize = 3 << 20;

pub(crate) mod action;
mod content_type;
pub(crate) mod continue_token;
pub(crate) mod delete_options;
mod escape;
pub(crate) mod list_options;
pub(crate) mod media;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod rejected;
pub(crate) mod write_options;

/// A part of a path with nothing escaped; `None` if something in it cannot be read.
pub(crate) fn unescaped_segment(text: &str) -> Option<String> {
    escape::unescape(text, escape::Part::Path).ok()
}

/// Whether a path is open to everybody.
pub(crate) fn is_public(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    path == "/version"
        || ["/healthz", "/livez", "/readyz"].iter().any(|health| {
            path.strip_prefix(health).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

/// How many cases a property test runs: `normal`, unless `WATCHKEEPER_CASES` says otherwise.
#[cfg(test)]
pub(crate) fn cases(normal: u32) -> u32 {
    let asked = std::env::var("WATCHKEEPER_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(normal)
}

/// The recorded answers in one file: a JSON object per line.
#[cfg(test)]
fn recorded(lines: &str) -> Vec<serde_json::Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Compares what was read of options, as JSON, or why it was rejected, with what is recorded.
#[cfg(test)]
fn assert_recorded(case: &serde_json::Value, read: Result<serde_json::Value, rejected::Rejected>) {
    use rejected::Rejected;
    match read {
        Ok(value) => assert_eq!(case["value"], value, "{case}"),
        Err(Rejected::Invalid { kind, name, errors }) => {
            let causes: Vec<[String; 3]> = errors
                .iter()
                .map(|error| [error.reason.cause().into(), error.field.clone(), error.body()])
                .collect();
            assert_eq!(case["causes"], serde_json::json!(causes), "{case}");
            let message = Rejected::Invalid { kind, name, errors }.message();
            assert_eq!(case["invalid"], message, "{case}");
        }
        Err(rejected) => assert_eq!(case["bad"], rejected.message(), "{case}"),
    }
}
