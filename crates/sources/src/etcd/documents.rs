//! Values of keys as documents.

use watchkeeper_core::json::Cursor;
use watchkeeper_core::{Document, Key, Projection, Reason, Rejection, Version};
use watchkeeper_etcd::KeyValue;
use watchkeeper_schema::{Error, yaml};

use super::names::Named;
use super::settings::Settings;

/// What a key says.
pub(super) enum Said {
    Object(Box<Document>),
    Rejected(Rejection),
    /// It is no object.
    Nothing,
}

/// Reads a key and its value. Rejections have no position.
pub(super) fn read(settings: &Settings, pair: &KeyValue) -> Said {
    let key = match settings.named(&pair.key) {
        Named::Object(key) => key,
        Named::Unreadable(key) => return Said::Rejected(rejection(key, "the key is not UTF-8".into())),
        Named::Status => return Said::Nothing,
    };
    match body(&pair.value) {
        Ok(body) => Said::Object(Box::new(document(key, pair, body))),
        Err((Reason::TooLarge, detail)) => {
            Said::Rejected(Rejection::new(Some(key), Reason::TooLarge, detail))
        }
        Err((_, detail)) => Said::Rejected(rejection(key, detail)),
    }
}

/// The object is to blame, whatever is wrong with it: reading it again gives the same.
pub(super) fn rejection(key: Key, detail: String) -> Rejection {
    Rejection::new(Some(key), Reason::Unreadable, detail)
}

/// A document whose identity is that of its key, whatever it says itself.
fn document(key: Key, pair: &KeyValue, body: Vec<u8>) -> Document {
    let version = Version::from(pair.mod_revision.unsigned_abs());
    // Metadata, where there are some, are found without decoding later.
    let mut document = match Document::read(&body, &Projection::everything()) {
        Ok(document) => document,
        Err(_) => Document::named(key.clone(), version.clone(), body),
    };
    document.header.uid = Some(pair.create_revision.to_string().as_str().into());
    document.header.key = key;
    document.header.version = version;
    document
}

/// The value as JSON, or what is wrong with it and where.
fn body(value: &[u8]) -> Result<Vec<u8>, (Reason, String)> {
    let unreadable = |detail: String| (Reason::Unreadable, detail);
    let text = std::str::from_utf8(value).map_err(|_| unreadable("not UTF-8".into()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // What begins as JSON is not read as YAML, which would make sense of many a mistake.
    if text.trim_start().starts_with(['{', '[']) {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.skip().and_then(|_| cursor.end()).map_err(|error| unreadable(error.to_string()))?;
        return Ok(text.as_bytes().to_vec());
    }
    match yaml::read(text) {
        Ok(yaml::Document { value, doubled }) => match doubled.first() {
            Some(twice) => {
                let at = format!("line {}, column {}", twice.line, twice.column);
                Err(unreadable(format!("{at}: the key {} is there twice", twice.key)))
            }
            None if value.is_null() => Err(unreadable("there is no document".into())),
            None => Ok(value.to_string().into_bytes()),
        },
        Err(misread) => {
            let reason =
                if matches!(misread.error, Error::TooLarge) { Reason::TooLarge } else { Reason::Unreadable };
            Err((reason, format!("line {}, column {}: {}", misread.line, misread.column, misread.error)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_or_yaml_and_mistakes_are_neither() {
        let read = |text: &str| body(text.as_bytes()).map(|body| String::from_utf8(body).unwrap());
        for (text, expected) in [
            (r#" {"a": [1, 2]}"#, r#" {"a": [1, 2]}"#),
            ("a: 1\nb: [x]\n", r#"{"a":1,"b":["x"]}"#),
            ("\u{feff}[]", "[]"),
            ("7", "7"),
            ("some words", r#""some words""#),
        ] {
            assert_eq!(read(text).unwrap(), expected);
        }
        for bad in
            [r#"{"a": }"#, r#"{"a": 1"#, "{} {}", "[1,", "a: [\n", "a: 1\na: 2\n", "", "# nothing\n", "\0"]
        {
            assert!(read(bad).is_err(), "{bad:?}: {:?}", read(bad));
        }
        assert!(body(b"k8s\0\xff").unwrap_err().1.contains("UTF-8"));
        assert!(read("a: 1\na: 2\n").unwrap_err().1.contains("line 2"));
    }

    #[test]
    fn the_identity_is_that_of_the_key_and_metadata_are_kept() {
        let settings = Settings::new(Vec::new(), "/a/");
        let pair = KeyValue {
            key: "/a/x".into(),
            value: r#"{"metadata":{"name":"other","generation":3,"labels":{}}}"#.into(),
            create_revision: 5,
            mod_revision: 7,
            ..KeyValue::default()
        };
        let Said::Object(document) = read(&settings, &pair) else { panic!() };
        let header = &document.header;
        assert_eq!((header.key.name(), header.version.number(), header.generation), ("x", Some(7), 3));
        assert_eq!(header.uid, Some("5".into()));
        assert!(!document.metadata.is_empty());
    }
}
