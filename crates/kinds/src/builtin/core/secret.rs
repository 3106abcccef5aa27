use crate::Kind;
use crate::kind::row::{field, kind};
use crate::kind::strategy::Fields;
use crate::validate::config::{MAX_SIZE, key, sealed};
use crate::validate::field::{Errors, Field};
use crate::validate::update::IMMUTABLE;
use serde_json::{Map, Value};
use watchkeeper_go::base64;
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind("", "v1", "Secret", "secrets", "secret")
    .selectable(&[field("type", "")])
    .unify(unify)
    .validate_with(validate)
    .validate_update_first(validate_update)
    .table(table::TABLE);

/// What must be there in a secret of a type.
const NEEDED: [(&str, &[&str]); 5] = [
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/basic-auth", &["username", "password"]),
];

/// `stringData` is a way to write `data`; it is never read.
fn unify(fields: &mut Fields) {
    let Some(Value::Object(texts)) = fields.remove("stringData") else { return };
    let data = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(data) = data {
        for (key, text) in texts {
            data.insert(key, base64::encode(text.as_str().unwrap_or_default().as_bytes()).into());
        }
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
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

fn validate_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    if new.get("type").value != old.get("type").value {
        new.get("type").invalid(IMMUTABLE, errors);
    }
    sealed(new, old, &["data"], errors);
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[NAME, text("Type", "What the secret is for."), text("Data", "How many entries there are."), AGE],
        |view| {
            let kind = view.object.text_or("type", "Opaque");
            vec![view.name(), kind.into(), view.object.len("data").into(), view.age()]
        },
    );
}
