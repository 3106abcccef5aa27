//! Maps keys of etcd to keys of objects, and ignores those that are none.

use watchkeeper_core::Key;

use super::settings::{Settings, StatusKey};

/// What a key of etcd stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    Object(Key),
    /// A name that is not UTF-8, as far as it can be shown.
    Unreadable(Key),
    /// Of no interest.
    Status,
}

impl Settings {
    pub(super) fn named(&self, key: &[u8]) -> Named {
        let is_status = match &self.status {
            Some(StatusKey::Prefix(prefix)) => key.starts_with(prefix.as_bytes()),
            Some(StatusKey::Suffix(suffix)) => key.ends_with(suffix.as_bytes()),
            None => false,
        };
        if is_status {
            return Named::Status;
        }
        let name = key.strip_prefix(self.prefix.as_bytes()).unwrap_or(key);
        match std::str::from_utf8(name) {
            Ok(name) => Named::Object(self.key(name)),
            Err(_) => Named::Unreadable(Key::new(None, &name.escape_ascii().to_string())),
        }
    }

    fn key(&self, name: &str) -> Key {
        match name.split_once('/').filter(|_| self.namespaced) {
            Some((namespace, name)) => Key::new(Some(namespace), name),
            None => Key::new(None, name),
        }
    }

    /// The key of an object.
    pub(super) fn object_key(&self, key: &Key) -> Vec<u8> {
        format!("{}{key}", self.prefix).into_bytes()
    }

    /// The key of an object's status, if it has one.
    pub(super) fn status_key(&self, key: &Key) -> Option<Vec<u8>> {
        Some(match self.status.as_ref()? {
            StatusKey::Prefix(prefix) => format!("{prefix}{key}").into_bytes(),
            StatusKey::Suffix(suffix) => format!("{}{key}{suffix}", self.prefix).into_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_an_object_and_an_object_is_that_key() {
        let mut settings = Settings::new(Vec::new(), "/a/");
        for (key, namespaced, plain) in [
            ("/a/x", Key::new(None, "x"), Key::new(None, "x")),
            ("/a/x/y", Key::new(Some("x"), "y"), Key::new(None, "x/y")),
            ("/a/x/y/z", Key::new(Some("x"), "y/z"), Key::new(None, "x/y/z")),
            ("/a/", Key::new(None, ""), Key::new(None, "")),
        ] {
            settings.namespaced = true;
            assert_eq!(settings.named(key.as_bytes()), Named::Object(namespaced.clone()));
            assert_eq!(settings.object_key(&namespaced), key.as_bytes());
            settings.namespaced = false;
            assert_eq!(settings.named(key.as_bytes()), Named::Object(plain.clone()));
            assert_eq!(settings.object_key(&plain), key.as_bytes());
        }
        assert_eq!(settings.named(b"/a/\xff"), Named::Unreadable(Key::new(None, "\\xff")));
    }

    #[test]
    fn statuses_are_no_objects() {
        let mut settings = Settings::new(Vec::new(), "/a/");
        let key = Key::new(Some("x"), "y");
        assert_eq!(settings.status_key(&key), None);
        settings.status = Some(StatusKey::Suffix(".status".into()));
        assert_eq!(settings.status_key(&key).unwrap(), b"/a/x/y.status");
        assert_eq!(settings.named(b"/a/x/y.status"), Named::Status);
        settings.status = Some(StatusKey::Prefix("/a/status/".into()));
        assert_eq!(settings.status_key(&key).unwrap(), b"/a/status/x/y");
        assert_eq!(settings.named(b"/a/status/x/y"), Named::Status);
        assert_eq!(settings.named(b"/a/x/y"), Named::Object(Key::new(None, "x/y")));
    }
}
