use super::media::header;
use super::rejected::Rejected;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchFormat {
    /// `application/json-patch+json`: a list of operations.
    Json,
    /// `application/merge-patch+json`: the fields that change.
    Merge,
    /// `application/strategic-merge-patch+json`: the same, with lists merged by keys; not for custom resources.
    Strategic,
    /// `application/apply-patch+yaml`: what the sender wants, in full.
    Apply,
}

/// How the body of a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`; not for custom resources.
    Protobuf,
}

/// The format of a body; without a content type, JSON. Custom resources have no protobuf.
pub(crate) fn body_format(headers: &HeaderMap, has_protobuf: bool) -> Result<BodyFormat, Rejected> {
    use BodyFormat::{Json, Protobuf, Yaml};
    let said = header(headers, &CONTENT_TYPE);
    if said.is_empty() {
        return Ok(Json);
    }
    let said = media_type(&said);
    let known: &[BodyFormat] = if has_protobuf { &[Json, Yaml, Protobuf] } else { &[Json, Yaml] };
    let found = known.iter().find(|format| Some(format.media_type()) == said.as_deref());
    found.copied().ok_or_else(|| unsupported(known.iter().map(|format| format.media_type())))
}

/// The format of a patch by its content type, which is compared as it is, parameters apart. Custom resources have no
/// strategic merge.
pub(crate) fn patch_format(headers: &HeaderMap, has_strategic: bool) -> Result<PatchFormat, Rejected> {
    use PatchFormat::{Apply, Json, Merge, Strategic};
    let said = header(headers, &CONTENT_TYPE);
    let said = match said.split_once(';') {
        Some((said, _)) if !said.is_empty() => said,
        _ => &*said,
    };
    let known: &[PatchFormat] =
        if has_strategic { &[Json, Merge, Strategic, Apply] } else { &[Json, Merge, Apply] };
    let found = known.iter().find(|format| format.media_type() == said);
    found.copied().ok_or_else(|| unsupported(known.iter().map(|format| format.media_type())))
}

impl BodyFormat {
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

impl PatchFormat {
    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

fn unsupported<'a>(types: impl Iterator<Item = &'a str>) -> Rejected {
    let types: Vec<&str> = types.collect();
    Rejected::UnsupportedMediaType(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        types.join(", ")
    ))
}

/// The media type in a `Content-Type`, in lower case; nothing if the header is not well-formed, its parameters included.
pub(super) fn media_type(header: &str) -> Option<String> {
    let (kind, mut rest) = header.split_at(header.find(';').unwrap_or(header.len()));
    let kind = kind.trim().to_ascii_lowercase();
    let (main, sub) = kind.split_once('/')?;
    if !is_token(main) || !is_token(sub) {
        return None;
    }
    let mut seen: Vec<(String, String)> = Vec::new();
    while !rest.is_empty() && rest.trim() != ";" {
        let (name, value, after) = parameter(rest)?;
        match seen.iter().find(|(known, _)| *known == name) {
            Some((_, known)) if *known != value => return None,
            Some(_) => {}
            // A header with that many parameters is not meant to be read.
            None if seen.len() == 64 => return None,
            None => seen.push((name, value)),
        }
        rest = after;
    }
    Some(kind)
}

/// `; name=value`, and what follows.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let text = text.trim_start().strip_prefix(';')?.trim_start();
    let (name, rest) = token(text)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let (value, rest) = match rest.strip_prefix('"') {
        Some(rest) => quoted(rest)?,
        None => token(rest).map(|(value, rest)| (value.to_owned(), rest))?,
    };
    Some((name.to_ascii_lowercase(), value, rest))
}

fn token(text: &str) -> Option<(&str, &str)> {
    let (token, rest) = text.split_at(text.find(|char| !is_token_char(char)).unwrap_or(text.len()));
    (!token.is_empty()).then_some((token, rest))
}

/// The rest of a quoted text, and what follows its end.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\r' | '\n' => return None,
            '\\' => match chars.next_if(|(_, next)| next.is_ascii_graphic() && !is_token_char(*next)) {
                Some((_, escaped)) => value.push(escaped),
                None => value.push(char),
            },
            char => value.push(char),
        }
    }
    None
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_token_char)
}

fn is_token_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`{|}~".contains(char)
}
