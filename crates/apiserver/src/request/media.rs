use super::accept::{Clause, clauses};
pub(crate) use super::content_type::{BodyFormat, PatchFormat, body_format, patch_format};
use super::query::Query;
use super::rejected::Rejected;
use http::HeaderMap;
use http::header::{ACCEPT, CONNECTION, HeaderName, UPGRADE, USER_AGENT};
use std::borrow::Cow;

/// The formats there are; the first is for clients that do not say.
pub(super) const FORMATS: [Format; 3] = [Format::Json, Format::Yaml, Format::Protobuf];

/// How bodies are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// What a client wants to have in place of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transform {
    /// The object itself.
    Object,
    /// Its metadata only, or that of the objects in a list.
    Partial,
    /// Rows and columns.
    Table,
}

/// The version of `meta.k8s.io` that a transformed answer has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    /// `v1`
    #[default]
    V1,
    /// `v1beta1`
    V1Beta1,
}

/// The form of an answer that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// How it is written.
    pub(crate) format: Format,
    /// What it is made into first.
    pub(crate) transform: Transform,
    /// The version of the transformed answer.
    pub(crate) version: MetaVersion,
    /// Whether metadata was asked for as `PartialObjectMetadataList`, which fits lists only, and not as
    /// `PartialObjectMetadata`, which fits all else.
    pub(crate) is_partial_list: bool,
    /// Whether the media type asked for readable JSON; [`pretty`] may as well.
    pub(crate) is_pretty: bool,
}

/// Which transforms an endpoint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Objects that can be shown as tables.
    Objects,
    /// The same, but the objects have no protobuf encoding; their metadata has.
    Custom,
    /// Objects that cannot.
    Untabled,
    /// Anything else has none.
    Plain,
}

/// Whether the router of kube-apiserver lets a request pass, which compares whole media types: `*/*` is one to it,
/// `application/*` is not.
pub(crate) fn is_routed(headers: &HeaderMap) -> bool {
    const KNOWN: [&str; 4] =
        ["*/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    let accept = header(headers, &ACCEPT);
    accept.is_empty()
        || accept.split(',').any(|part| KNOWN.contains(&part.split(';').next().unwrap_or_default().trim()))
}

/// The best form for the answer of an endpoint. Only the first `Accept` header counts, as in the real server.
pub(crate) fn accept(headers: &HeaderMap, endpoint: Endpoint) -> Result<Accepted, Rejected> {
    let found = find(headers, endpoint);
    found.ok_or_else(|| not_acceptable(FORMATS.iter().map(|format| format.media_type().into())))
}

/// The best form for the events of a watch, which cannot be YAML.
pub(crate) fn accept_stream(headers: &HeaderMap, endpoint: Endpoint) -> Result<Accepted, Rejected> {
    let found = find(headers, endpoint).filter(|accepted| accepted.format.has_stream());
    found.ok_or_else(|| {
        let streams = FORMATS.iter().filter(|format| format.has_stream());
        not_acceptable(streams.map(|format| format!("{};stream=watch", format.media_type())))
    })
}

/// How a client that wants all groups, versions and resources in one document wants it written. If it does not, discovery
/// is [`Endpoint::Untabled`].
pub(crate) fn aggregated_discovery(headers: &HeaderMap) -> Option<Format> {
    let accept = header(headers, &ACCEPT);
    let asks = |clause: &Clause<'_>| {
        let asked = ["g", "v", "as"].map(|name| clause.parameter(name));
        let is_asked = asked == ["apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"].map(Some);
        let mut formats = FORMATS.into_iter().filter(|_| is_asked);
        formats.find(|format| format.is_in(clause) && is_allowed(clause, *format, false))
    };
    clauses(&accept).iter().find_map(asks)
}

impl Format {
    /// The media type.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The media type of watch events.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Self::Json | Self::Yaml => self.media_type(),
        }
    }

    /// Whether watch events can be written this way.
    fn has_stream(self) -> bool {
        self != Self::Yaml
    }

    fn is_in(self, clause: &Clause<'_>) -> bool {
        let (main, sub) = self.media_type().split_once('/').unwrap_or_default();
        match (clause.main, clause.sub) {
            ("*", "*") => true,
            (asked, "*") => asked == main,
            asked => asked == (main, sub),
        }
    }
}

fn find(headers: &HeaderMap, endpoint: Endpoint) -> Option<Accepted> {
    let accept = header(headers, &ACCEPT);
    let plain = Accepted {
        format: Format::Json,
        transform: Transform::Object,
        version: MetaVersion::V1,
        is_partial_list: false,
        is_pretty: false,
    };
    if accept.is_empty() || accept == Format::Json.media_type() {
        return Some(plain);
    }
    let clauses = clauses(&accept);
    let mut pairs = clauses.iter().flat_map(|clause| FORMATS.iter().map(move |format| (clause, *format)));
    pairs.find_map(|(clause, format)| {
        if !format.is_in(clause) || !is_allowed(clause, format, endpoint != Endpoint::Plain) {
            return None;
        }
        let (transform, version) = transform(clause, format, endpoint)?;
        let is_partial_list = clause.parameter("as") == Some("PartialObjectMetadataList");
        let is_pretty = clause.parameter("pretty") == Some("1");
        Some(Accepted { format, transform, version, is_partial_list, is_pretty })
    })
}

/// Whether nothing in a clause but its transform speaks against a format.
fn is_allowed(clause: &Clause<'_>, format: Format, has_versions: bool) -> bool {
    let parameter = |name: &str| clause.parameter(name).filter(|value| !value.is_empty());
    let is_stream_fit = parameter("stream").is_none_or(|stream| stream == "watch" && format.has_stream());
    is_stream_fit && parameter("sv").is_none_or(|version| has_versions && version == "v1")
}

/// The transform that a clause asks for, if the endpoint has it.
fn transform(clause: &Clause<'_>, format: Format, endpoint: Endpoint) -> Option<(Transform, MetaVersion)> {
    let asked = ["g", "v", "as"].map(|name| clause.parameter(name));
    if asked == [None; 3] {
        let has_encoding = endpoint != Endpoint::Custom || format != Format::Protobuf;
        return has_encoding.then_some((Transform::Object, MetaVersion::V1));
    }
    let version = match asked {
        [Some("meta.k8s.io"), Some("v1"), _] => MetaVersion::V1,
        [Some("meta.k8s.io"), Some("v1beta1"), _] => MetaVersion::V1Beta1,
        _ => return None,
    };
    match (asked[2]?, endpoint) {
        (_, Endpoint::Plain) => None,
        ("Table", Endpoint::Objects | Endpoint::Custom) if format != Format::Protobuf => {
            Some((Transform::Table, version))
        }
        ("PartialObjectMetadata" | "PartialObjectMetadataList", _) => Some((Transform::Partial, version)),
        _ => None,
    }
}

fn not_acceptable(types: impl Iterator<Item = String>) -> Rejected {
    let types: Vec<String> = types.collect();
    Rejected::NotAcceptable(format!("only the following media types are accepted: {}", types.join(", ")))
}

/// Whether JSON is to be written for a person: if the query says so, or the client is one that people look at.
pub(crate) fn pretty(headers: &HeaderMap, query: &Query) -> bool {
    match query.get("pretty") {
        Some(said) if !said.is_empty() => matches!(said, "1" | "t" | "T" | "TRUE" | "true" | "True"),
        _ => {
            let agent = header(headers, &USER_AGENT);
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|known| agent.starts_with(known))
        }
    }
}

/// Whether the client wants to go on over a WebSocket.
pub(crate) fn asks_for_web_socket(headers: &HeaderMap) -> bool {
    let connection = header(headers, &CONNECTION).to_ascii_lowercase();
    connection.split(',').any(|word| word.trim() == "upgrade")
        && header(headers, &UPGRADE).eq_ignore_ascii_case("websocket")
}

/// The first header of that name as text; empty if there is none.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Cow<'a, str> {
    headers.get(name).map_or(Cow::Borrowed(""), |value| String::from_utf8_lossy(value.as_bytes()))
}

#[cfg(test)]
mod tests;
