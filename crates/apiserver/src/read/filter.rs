//! Which objects a client wants to see.

use memchr::memmem::Finder;
use serde_json::Value;
use watchkeeper_storage::Entry;
use watchkeeper_wire::{FieldSelector, LabelSelector};

use crate::object::record::Record;
use crate::request::list_options::ListOptions;
use crate::resource::Resource;
use crate::status_error::StatusError;

/// A label selector and a field selector.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    labels: LabelSelector,
    fields: FieldSelector,
    /// What the JSON of every object has in it that matches: most that do not are told by that, without being read.
    traces: Vec<Finder<'static>>,
    /// The name in the path of a watch.
    only: Option<String>,
}

impl Filter {
    /// Refuses fields that cannot be selected by.
    pub(crate) fn new(resource: &Resource, options: &ListOptions) -> Result<Self, StatusError> {
        let fields = options.field_selector.clone();
        if let Some(term) = fields.terms().iter().find(|term| !resource.can_select(&term.field)) {
            let message = match resource.builtin_kind() {
                Some(kind) => kind.unsupported_field(&term.field),
                None => format!("field label not supported: {}", term.field),
            };
            return Err(StatusError::bad_request(message));
        }
        let labels = options.label_selector.clone();
        // Neither has a character that JSON would escape.
        let traces = labels.required().map(|(key, value)| format!(r#""{key}":"{value}""#));
        let traces = traces.map(|trace| Finder::new(&trace).into_owned()).collect();
        Ok(Self { labels, fields, traces, only: None })
    }

    /// Whether fields are not selected by at all, or the object of this name is.
    pub(crate) fn asks_for_all_or(&self, name: Option<&str>) -> bool {
        self.fields.is_everything() || self.fields.required("metadata.name") == name
    }

    /// Only the object of this name.
    #[must_use]
    pub(crate) fn restricted_to(self, name: Option<&str>) -> Self {
        Self { only: name.map(str::to_owned).or(self.only), ..self }
    }

    /// Whether everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && self.only.is_none()
    }

    /// The only name that can match, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.only.as_deref().or_else(|| self.fields.required("metadata.name"))
    }

    pub(crate) fn matches(&self, resource: &Resource, entry: &Entry) -> Result<bool, StatusError> {
        let (namespace, name) = resource.split_key(&entry.key);
        if self.only.as_ref().is_some_and(|only| only != name) {
            return Ok(false);
        }
        if !self.fields.is_everything() && !self.matches_fields(resource, entry, namespace, name)? {
            return Ok(false);
        }
        if self.labels.is_everything() {
            return Ok(true);
        }
        if self.traces.iter().any(|trace| trace.find(&entry.value).is_none()) {
            return Ok(false);
        }
        let record = Record::read(entry).map_err(|error| StatusError::internal(error.to_string()))?;
        let labels = record.labels().map_err(|error| StatusError::internal(error.to_string()))?;
        Ok(self.labels.matches_pairs(|key| labels.get(key)))
    }

    fn matches_fields(
        &self,
        resource: &Resource,
        entry: &Entry,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<bool, StatusError> {
        let mut object: Option<Value> = None;
        for term in self.fields.terms() {
            let found = match term.field.as_str() {
                "metadata.name" => name.to_owned(),
                "metadata.namespace" => namespace.unwrap_or_default().to_owned(),
                field => {
                    let object = match &mut object {
                        Some(object) => object,
                        none => none.insert(resource.read(entry)?),
                    };
                    resource.selected(object, field).unwrap_or_default()
                }
            };
            if (found == term.value) != term.is_equal {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
