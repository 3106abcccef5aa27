use std::fmt;

use crate::error::Error;

/// The reference of an image in a registry: `registry.example.com:5000/team/shop:1.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The host of the registry, with the port if there is one.
    pub registry: String,
    /// The name of the repository.
    pub repository: String,
    /// The tag.
    pub tag: String,
}

impl Reference {
    /// Reads a reference. The host is required; the default tag is `latest`.
    ///
    /// # Errors
    ///
    /// If a part is invalid.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |what: &str| {
            Error::Input(format!(
                "{text:?} is no place for an image: {what}; write it as registry.example.com/team/shop:1.0"
            ))
        };
        let (registry, rest) = text.split_once('/').ok_or_else(|| wrong("there is no registry in it"))?;
        if !(registry.contains(['.', ':']) || registry == "localhost")
            || registry.contains(char::is_whitespace)
        {
            return Err(wrong("it does not begin with the host of a registry"));
        }
        if rest.contains('@') {
            return Err(wrong("a digest is what comes of a push, not where to"));
        }
        let (repository, tag) = rest.rsplit_once(':').unwrap_or((rest, "latest"));
        let is_name = |part: &str| {
            let is_end = |char: Option<char>| {
                char.is_some_and(|char| char.is_ascii_lowercase() || char.is_ascii_digit())
            };
            let inner =
                |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || "._-".contains(char);
            part.chars().all(inner) && is_end(part.chars().next()) && is_end(part.chars().next_back())
        };
        if !repository.split('/').all(is_name) {
            return Err(wrong("the name has to be of lowercase letters, digits, and . _ - between them"));
        }
        let is_tag = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        if tag.is_empty() || tag.len() > 128 || tag.starts_with(['.', '-']) || !tag.chars().all(is_tag) {
            return Err(wrong("the tag has to be of letters, digits, and . _ -"));
        }
        Ok(Self { registry: registry.to_owned(), repository: repository.to_owned(), tag: tag.to_owned() })
    }

    /// Whether the registry is on this machine, where there is no TLS.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.registry.rsplit_once(':').map_or(self.registry.as_str(), |(host, _)| host);
        host == "localhost" || host == "[::1]" || host.starts_with("127.")
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.registry, self.repository, self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_or_refused_with_a_reason() {
        let parsed = Reference::parse("localhost:5000/a/b-c:V1.0_x").unwrap();
        assert_eq!(
            (&*parsed.registry, &*parsed.repository, &*parsed.tag),
            ("localhost:5000", "a/b-c", "V1.0_x")
        );
        assert!(parsed.is_local());
        assert_eq!(Reference::parse("r.example.com/shop").unwrap().to_string(), "r.example.com/shop:latest");
        for text in [
            "shop",
            "shop:1",
            "team/shop",
            "r.io/",
            "r.io/Shop",
            "r.io/a//b",
            "r.io/a:",
            "r.io/a:x y",
            "r.io/a@sha256:00",
            "r.io/-a",
        ] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }
}
