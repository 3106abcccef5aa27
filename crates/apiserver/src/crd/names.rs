use super::field::{get, text, texts};
use serde_json::{Value, json};

/// What a resource is called: `spec.names` as asked for, `status.acceptedNames` as granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// In paths: `widgets`.
    pub(crate) plural: String,
    /// An alias on the command line: `widget`.
    pub(crate) singular: String,
    /// In objects: `Widget`.
    pub(crate) kind: String,
    /// In lists: `WidgetList`.
    pub(crate) list_kind: String,
    /// Aliases on the command line: `wd`.
    pub(crate) short_names: Vec<String>,
    /// Groups of resources it is in: `all`.
    pub(crate) categories: Vec<String>,
}

impl Names {
    /// Reads names; what is missing is empty.
    pub(crate) fn read(names: &Value) -> Self {
        Self {
            plural: text(names, "plural").into(),
            singular: text(names, "singular").into(),
            kind: text(names, "kind").into(),
            list_kind: text(names, "listKind").into(),
            short_names: texts(names, "shortNames"),
            categories: texts(names, "categories"),
        }
    }

    /// The names a definition asks for.
    pub(crate) fn requested(definition: &Value) -> Self {
        super::field::deep(definition, &["spec", "names"]).map(Self::read).unwrap_or_default()
    }

    /// The names a definition has been granted so far.
    pub(crate) fn accepted(definition: &Value) -> Self {
        let status = get(definition, "status");
        status.and_then(|status| get(status, "acceptedNames")).map(Self::read).unwrap_or_default()
    }

    /// As JSON: `plural` and `kind` always, the others if they are not empty.
    pub(crate) fn write(&self) -> Value {
        let mut names = json!({"plural": self.plural, "kind": self.kind});
        for (field, name) in [("singular", &self.singular), ("listKind", &self.list_kind)] {
            if !name.is_empty() {
                names[field] = json!(name);
            }
        }
        for (field, list) in [("shortNames", &self.short_names), ("categories", &self.categories)] {
            if !list.is_empty() {
                names[field] = json!(list);
            }
        }
        names
    }

    /// The names that stand for the resource in paths and on the command line.
    pub(super) fn resources(&self) -> impl Iterator<Item = &str> {
        let singles = [&self.plural, &self.singular].into_iter();
        singles.chain(&self.short_names).map(String::as_str)
    }

    /// The names that stand for it in objects.
    pub(super) fn kinds(&self) -> [&str; 2] {
        [&self.kind, &self.list_kind]
    }
}
