//! Where a webhook is.

use std::time::Duration;

use serde_json::Value;

/// Where a webhook is: the `clientConfig` of a configuration or of a CRD.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientConfig {
    pub(super) place: Place,
    /// The authorities that its server has a certificate of, in PEM; empty for those of the system.
    pub(super) authorities: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

impl ClientConfig {
    /// Reads a `clientConfig`. It was validated when it was written.
    pub(crate) fn read(config: &Value) -> Self {
        let authorities =
            config["caBundle"].as_str().and_then(|text| watchkeeper_go::base64::decode(text).ok());
        let authorities = authorities.filter(|text| !text.trim_ascii().is_empty());
        let service = &config["service"];
        let text = |field: &str| service[field].as_str().unwrap_or_default().to_owned();
        let place = match config["url"].as_str() {
            Some(url) => Place::Url(url.to_owned()),
            None => Place::Service {
                namespace: text("namespace"),
                name: text("name"),
                port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
                path: text("path"),
            },
        };
        Self { place, authorities: authorities.unwrap_or_default() }
    }

    /// The URL, as messages have it; with the time that the webhook has, if it is told.
    pub(super) fn url(&self, told: Option<Duration>) -> String {
        let timeout = told.map(|timeout| format!("timeout={}s", whole_seconds(timeout))).unwrap_or_default();
        match &self.place {
            Place::Url(url) => {
                let (url, query) = url.split_once('?').unwrap_or((url, ""));
                let begin = url.find("://").map_or(0, |at| at.saturating_add(3));
                let (host, path) =
                    url.split_at(url[begin..].find('/').map_or(url.len(), |at| begin.saturating_add(at)));
                let queries: Vec<&str> =
                    [query, &timeout].into_iter().filter(|query| !query.is_empty()).collect();
                let mark = if queries.is_empty() { "" } else { "?" };
                format!("{host}{}{mark}{}", cleaned(path), queries.join("&"))
            }
            Place::Service { namespace, name, port, path } => {
                let mark = if timeout.is_empty() { "" } else { "?" };
                format!("https://{name}.{namespace}.svc:{port}{}{mark}{timeout}", cleaned(path))
            }
        }
    }
}

/// A time in seconds, of which one that has begun counts.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

/// A path as Go's client sends it: without empty segments, of which envtest makes one.
fn cleaned(path: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_what_go_makes_of_them() {
        let url = |url: &str, told: Option<u64>| {
            let client = ClientConfig { place: Place::Url(url.to_owned()), authorities: Vec::new() };
            client.url(told.map(Duration::from_secs))
        };
        assert_eq!(
            url("https://127.0.0.1:9443//mutate", Some(10)),
            "https://127.0.0.1:9443/mutate?timeout=10s"
        );
        assert_eq!(url("https://127.0.0.1:9443", Some(10)), "https://127.0.0.1:9443/?timeout=10s");
        assert_eq!(url("https://h/a/./b/?x=1", Some(10)), "https://h/a/b?x=1&timeout=10s");
        assert_eq!(url("https://h/convert", None), "https://h/convert");
        let client = ClientConfig { place: Place::Url("https://h/a".to_owned()), authorities: Vec::new() };
        assert_eq!(client.url(Some(Duration::from_millis(1001))), "https://h/a?timeout=2s");
        assert_eq!(url("https://h/convert?x=1", None), "https://h/convert?x=1");
    }
}
