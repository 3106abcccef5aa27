//! The items of a page as objects.

use std::collections::HashSet;

use serde_json::Value;
use watchkeeper_core::{Document, Key, Projection, Reason, Rejection};

use super::settings::Settings;
use crate::print::Print;

/// The items of a list, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) objects: Vec<(Print, Document)>,
    pub(super) rejections: Vec<Rejection>,
    keys: HashSet<Key>,
}

impl Items {
    /// Adds the items of a page; an error says what is not as it should be.
    pub(super) fn add(&mut self, settings: &Settings, page: &mut Value) -> Result<(), String> {
        let at = &settings.items;
        let shown = if at.is_empty() { "the body" } else { at };
        match page.pointer_mut(at).map(Value::take) {
            Some(Value::Array(items)) => {
                for (index, item) in items.into_iter().enumerate() {
                    self.item(settings, &format!("{at}/{index}"), None, &item);
                }
            }
            Some(Value::Object(members)) => {
                for (name, item) in members {
                    self.item(settings, &format!("{at}/{name}"), Some(&name), &item);
                }
            }
            Some(_) => return Err(format!("{shown} is neither a list nor an object")),
            None => return Err(format!("there is nothing at {shown}")),
        }
        Ok(())
    }

    /// Whether something is in the list that cannot even be named.
    pub(super) fn has_nameless(&self) -> bool {
        self.rejections.iter().any(|rejection| rejection.key.is_none())
    }

    /// What tells this list from another.
    pub(super) fn print(&self) -> Print {
        let all = self.objects.iter();
        all.fold(Print::default(), |set, (print, document)| {
            set.with(document.header.key.to_string().as_bytes(), *print)
        })
    }

    fn item(&mut self, settings: &Settings, at: &str, member: Option<&str>, item: &Value) {
        let body = item.to_string().into_bytes();
        let document = match (&settings.key, member) {
            (Some(pointer), _) => {
                let namespace = settings.namespace.as_ref().and_then(|pointer| name(item.pointer(pointer)?));
                match item.pointer(pointer).and_then(name) {
                    Some(name) => Document::named(Key::new(namespace.as_deref(), &name), "".into(), body),
                    None => return self.nameless(at, &format!("no text or number at {pointer}")),
                }
            }
            (None, Some(member)) => Document::named(Key::new(None, member), "".into(), body),
            (None, None) => match Document::read(&body, &Projection::default()) {
                Ok(document) => document,
                Err(unreadable) => {
                    let why =
                        format!("{unreadable}; a key such as /id says where else items have their names");
                    return self.nameless(at, &why);
                }
            },
        };
        self.object(at, document);
    }

    fn object(&mut self, at: &str, mut document: Document) {
        let print = Print::of(&document.body);
        document.header.version = print.version();
        let key = document.header.key.clone();
        if self.keys.insert(key.clone()) {
            self.objects.push((print, document));
        } else {
            let detail = format!("{at} has the key of an item before it");
            self.rejections.push(Rejection::new(Some(key), Reason::Conflict, detail));
        }
    }

    fn nameless(&mut self, at: &str, why: &str) {
        let detail = format!("{at}: {why}");
        self.rejections.push(Rejection::new(None, Reason::Nameless, detail));
    }
}

/// A text or a number as a name.
fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(
        change: impl FnOnce(&mut Settings),
        mut page: Value,
    ) -> Result<(Vec<String>, Vec<String>), String> {
        let mut settings = Settings::new("http://host/");
        change(&mut settings);
        let mut items = Items::default();
        items.add(&settings, &mut page)?;
        let keys = items.objects.iter().map(|(_, document)| document.header.key.to_string());
        let rejections = items.rejections.iter().map(|rejection| rejection.detail.clone());
        Ok((keys.collect(), rejections.collect()))
    }

    #[test]
    fn items_are_found_and_named() {
        let page = json!({"data": {"rows": [{"id": 7, "team": "a"}, {"id": "x"}, {"id": null}, {"id": 7, "team": "a"}]}});
        let found = read(
            |settings| {
                settings.items = "/data/rows".into();
                settings.key = Some("/id".into());
                settings.namespace = Some("/team".into());
            },
            page,
        );
        let faults =
            ["/data/rows/2: no text or number at /id", "/data/rows/3 has the key of an item before it"];
        assert_eq!(found, Ok((vec!["a/7".into(), "x".into()], faults.map(String::from).to_vec())));
    }

    #[test]
    fn members_of_an_object_are_called_by_their_names_and_kubernetes_objects_by_theirs() {
        assert_eq!(read(|_| {}, json!({"consul": [], "web": ["v1"]})).unwrap().0, ["consul", "web"]);
        let pods = json!([{"metadata": {"name": "a", "namespace": "n"}}, {"metadata": {}}]);
        let (keys, faults) = read(|_| {}, pods).unwrap();
        let fault = "/1: no metadata.name; a key such as /id says where else items have their names";
        assert_eq!((keys, faults), (vec!["n/a".to_owned()], vec![fault.to_owned()]));
    }

    #[test]
    fn what_is_no_list_is_not_an_empty_one() {
        for page in [json!(null), json!("gone"), json!(7)] {
            assert!(read(|_| {}, page).is_err());
        }
        assert_eq!(
            read(|settings| settings.items = "/items".into(), json!({"error": "maintenance"})),
            Err("there is nothing at /items".into())
        );
        assert_eq!(
            read(|settings| settings.items = "/items".into(), json!({"items": null})),
            Err("/items is neither a list nor an object".into())
        );
    }
}
