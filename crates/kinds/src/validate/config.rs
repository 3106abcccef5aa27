//! Config maps and secrets.

use super::field::{Errors, Field};
use watchkeeper_go::base64;
use watchkeeper_schema::FieldError;

/// The bytes of values that a config map or a secret may hold together.
const MAX_SIZE: usize = 1024 * 1024;

/// What must be there in a secret of a type.
const NEEDED: [(&str, &[&str]); 5] = [
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/basic-auth", &["username", "password"]),
];

pub(super) fn config_map(object: &Field<'_>, errors: &mut Errors) {
    let (data, binary) = (object.get("data"), object.get("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        self::key(key, &value, errors);
        if binary.get(key).is_set() {
            errors.push(FieldError::invalid(&value.at, key, "duplicate of key present in binaryData"));
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        self::key(key, &value, errors);
        size += value.text().len() / 4 * 3;
    }
    if size > MAX_SIZE {
        errors.push(FieldError::too_long(&object.at, MAX_SIZE as i64));
    }
}

pub(super) fn secret(object: &Field<'_>, errors: &mut Errors) {
    let (data, kind) = (object.get("data"), object.get("type").text());
    let mut size = 0;
    for (key, value) in data.entries() {
        self::key(key, &value, errors);
        size += value.text().len() / 4 * 3;
    }
    if size > MAX_SIZE {
        errors.push(FieldError::too_long(&data.at, MAX_SIZE as i64));
    }
    let annotations = object.get("metadata").get("annotations");
    let account = "kubernetes.io/service-account.name";
    if kind == "kubernetes.io/service-account-token" && annotations.get(account).is_empty() {
        errors.push(FieldError::required(&annotations.at.key(account), ""));
    }
    let needed = NEEDED.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, needed)| needed);
    // Either of the two is enough to log in with.
    let is_partly_enough = kind == "kubernetes.io/basic-auth";
    if !is_partly_enough || needed.iter().all(|key| !data.get(key).is_set()) {
        for key in needed.iter().filter(|key| !data.get(key).is_set()) {
            errors.push(FieldError::required(&data.at.key(key), ""));
        }
    }
    for key in [".dockercfg", ".dockerconfigjson"].into_iter().filter(|key| needed.contains(key)) {
        let bytes = base64::decode(data.get(key).text()).unwrap_or_default();
        if data.get(key).is_set()
            && let Err(error) = watchkeeper_schema::json::decode(&bytes)
        {
            let at = data.at.key(key);
            errors.push(FieldError::invalid(&at, "<secret contents redacted>", error.to_string()));
        }
    }
}

fn key(key: &str, value: &Field<'_>, errors: &mut Errors) {
    let complain =
        |detail: &str, errors: &mut Errors| errors.push(FieldError::invalid(&value.at, key, detail));
    if key.len() > 253 {
        complain("must be no more than 253 characters", errors);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(is_plain) {
        complain(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            errors,
        );
    }
    match key {
        "." => complain("must not be '.'", errors),
        ".." => complain("must not be '..'", errors),
        _ if key.starts_with("..") => complain("must not start with '..'", errors),
        _ => {}
    }
}
