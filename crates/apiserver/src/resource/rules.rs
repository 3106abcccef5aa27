//! What the objects of a resource have to be, wherever the rules come from.

use std::borrow::Cow;

use serde_json::Value;
use watchkeeper_kinds::{Subresource, Verbs};
use watchkeeper_schema::{Error, FieldError, Path, Reason, Shape, metadata, patch};
use watchkeeper_table::FieldPath;

use super::{Nature, Resource};
use crate::crd;
use crate::object::meta;
use crate::request::action::Verb;
use crate::status_error::{StatusError, Subject};

impl Resource {
    /// Whether objects of it are kept: reviews are answered and forgotten.
    pub(crate) fn is_stored(&self) -> bool {
        self.builtin_kind().is_none_or(|kind| !matches!(kind.verbs, Verbs::CreateOnly | Verbs::ReadOnly))
    }

    /// Whether its objects are made up when they are asked for.
    pub(crate) fn is_made_up(&self) -> bool {
        self.builtin_kind().is_some_and(|kind| kind.verbs == Verbs::ReadOnly)
    }

    /// Whether it has this subresource.
    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        match &self.nature {
            Nature::Builtin(kind) => kind.subresource(name).is_some(),
            Nature::Custom(installed, index) => match name {
                "status" => installed.definition.versions[*index].status,
                "scale" => installed.definition.versions[*index].scale.is_some(),
                _ => false,
            },
        }
    }

    /// Whether an update may leave out the `resourceVersion` that it replaces.
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        self.builtin_kind().is_some_and(|kind| kind.unconditional_update)
    }

    /// Whether replacing what does not exist creates it.
    pub(crate) fn allows_create_on_update(&self) -> bool {
        self.builtin_kind().is_some_and(|kind| kind.create_on_update)
    }

    /// The value of a field that objects can be selected by; `None` if they cannot.
    pub(crate) fn selected(&self, object: &Value, field: &str) -> Option<String> {
        if let Some(kind) = self.builtin_kind() {
            return kind.selected(object, field);
        }
        let (_, version) = self.custom_version()?;
        let path = version.selectable.iter().find(|path| path.trim_start_matches('.') == field)?;
        let found = FieldPath::parse(path).ok().and_then(|path| path.get(object).cloned());
        Some(match found {
            Some(Value::String(text)) => text,
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        })
    }

    /// Whether objects can be selected by this field.
    pub(crate) fn can_select(&self, field: &str) -> bool {
        match field {
            "metadata.name" => true,
            "metadata.namespace" => self.namespaced || self.builtin_kind().is_none(),
            field => self.selected(&Value::Null, field).is_some(),
        }
    }

    /// Coerces an object to the schema of this resource. Drops unknown fields and returns their paths. The error is a
    /// message for the client.
    pub(crate) fn coerce(&self, object: &mut Value) -> Result<Vec<String>, String> {
        match &self.nature {
            Nature::Builtin(kind) => kind.coerce(object).map_err(|error| error.to_string()),
            Nature::Custom(..) => match self.custom_version() {
                Some((_, version)) => version.schema.coerce(object).map_err(|error| error.to_string()),
                None => Ok(Vec::new()),
            },
        }
    }

    /// The same with what a webhook has made of an object. Fields of custom resources that no schema knows stay until the object is
    /// stored, as in kube-apiserver: hooks that come later see them.
    pub(crate) fn coerce_unpruned(&self, object: &mut Value) -> Result<(), String> {
        match self.custom_version() {
            Some((_, version)) => version.schema.coerce_unpruned(object).map_err(|error| error.to_string()),
            None => self.coerce(object).map(drop),
        }
    }

    /// Removes fields that the schema of a custom resource does not know.
    pub(crate) fn prune(&self, object: &mut Value) {
        if let Some((_, version)) = self.custom_version() {
            version.schema.prune(object);
        }
    }

    /// Sets the defaults of fields that are missing.
    pub(crate) fn default(&self, object: &mut Value) {
        match &self.nature {
            Nature::Builtin(kind) => kind.default(object),
            Nature::Custom(installed, index) => installed.definition.versions[*index].schema.default(object),
        }
    }

    /// What becomes of an object before it is created: what clients may not set is reset.
    pub(crate) fn prepare_create(&self, object: &mut Value) {
        match &self.nature {
            Nature::Builtin(_) if self.is_crd() => crd::prepare_create(object),
            Nature::Builtin(kind) => kind.prepare_for_create(object),
            Nature::Custom(installed, index) => {
                crd::object::prepare_create(&installed.definition.versions[*index], object);
            }
        }
    }

    /// What becomes of an object before it, or a part of it, replaces `old`.
    pub(crate) fn prepare_update(&self, part: Subresource, new: &mut Value, old: &Value) {
        match (&self.nature, part) {
            (Nature::Builtin(_), Subresource::Status) if self.is_crd() => {
                crd::prepare_status_update(new, old);
            }
            (Nature::Builtin(_), _) if self.is_crd() => crd::prepare_update(new, old),
            (Nature::Builtin(kind), part) => kind.prepare_for_update(part, new, old),
            (Nature::Custom(..), Subresource::Status) => crd::object::prepare_status_update(new, old),
            (Nature::Custom(installed, index), _) => {
                crd::object::prepare_update(&installed.definition.versions[*index], new, old);
            }
        }
    }

    /// What is wrong with a new object.
    pub(crate) fn validate(&self, object: &Value) -> Vec<FieldError> {
        if self.is_crd() {
            return crd::validate(object, None);
        }
        let mut errors = Vec::new();
        match &self.nature {
            Nature::Builtin(kind) => {
                errors.extend(worded(kind.validate(object, None)));
                errors.extend(unqualified(object));
            }
            Nature::Custom(installed, index) => {
                let version = &installed.definition.versions[*index];
                errors.extend(self.metadata_errors(object));
                errors.extend(version.schema.validate(object));
                errors.extend(crd::object::check_scale(version, object, false));
            }
        }
        errors
    }

    /// What is wrong with an object that, or a part of which, replaces `old`.
    pub(crate) fn validate_update(&self, part: Subresource, new: &Value, old: &Value) -> Vec<FieldError> {
        if self.is_crd() {
            return match part {
                Subresource::Status => crd::validate_status(new, old),
                _ => crd::validate(new, Some(old)),
            };
        }
        let mut errors = self.metadata_errors(new);
        errors.extend(metadata_update_errors(new, old));
        // kube-apiserver says some things again for each kind, and clients see it.
        match &self.nature {
            Nature::Builtin(kind) if part == Subresource::Main => {
                for _ in 0..kind.metadata_checks.on_change {
                    errors.extend(metadata_update_errors(new, old));
                }
                errors.extend(kind.validate(new, Some(old)));
                if kind.metadata_checks.on_object > 0 {
                    errors.extend(unqualified(new));
                }
                errors = worded(errors);
            }
            Nature::Builtin(kind) => {
                if kind.metadata_checks.on_subresource {
                    errors.extend(metadata_update_errors(new, old));
                }
                errors.extend(kind.validate_part(part, new, old));
                errors = worded(errors);
            }
            Nature::Custom(installed, index) => {
                errors.extend(metadata_update_errors(new, old));
                let version = &installed.definition.versions[*index];
                errors.extend(if part == Subresource::Status {
                    version.schema.validate_status_update(old, new)
                } else {
                    version.schema.validate_update(old, new)
                });
                errors.extend(crd::object::check_scale(version, new, part == Subresource::Status));
            }
        }
        errors
    }

    fn metadata_errors(&self, object: &Value) -> Vec<FieldError> {
        let at = Path::root().child("metadata");
        let mut errors = Vec::new();
        let invalid = |field: &str, value: &str, problems: Vec<String>| {
            let at = at.child(field);
            problems
                .into_iter()
                .map(move |problem| FieldError::invalid(&at, value, problem))
                .collect::<Vec<_>>()
        };
        let prefix = meta::text(object, "generateName");
        if !prefix.is_empty() {
            errors.extend(invalid("generateName", prefix, self.name_problems(prefix, true)));
        }
        match meta::name(object) {
            "" => errors.push(FieldError::required(&at.child("name"), "name or generateName is required")),
            name => errors.extend(invalid("name", name, self.name_problems(name, false))),
        }
        match (self.namespaced, meta::text(object, "namespace")) {
            (true, "") => errors.push(FieldError::required(&at.child("namespace"), "")),
            (false, namespace) if !namespace.is_empty() => {
                errors.push(FieldError::forbidden(&at.child("namespace"), "not allowed on this type"));
            }
            _ => {}
        }
        errors.extend(metadata::validate(&object["metadata"], &at));
        errors
    }

    /// What is wrong with a name, or with what one is to begin with.
    fn name_problems(&self, name: &str, is_prefix: bool) -> Vec<String> {
        // A prefix may end with a dash: something will follow it.
        let masked = match name.strip_suffix('-').filter(|rest| is_prefix && !rest.is_empty()) {
            Some(rest) => format!("{}a", &rest[..rest.floor_char_boundary(rest.len() - 1)]),
            None => name.to_owned(),
        };
        match &self.nature {
            Nature::Builtin(kind) => kind.name_rule.problems(&masked),
            Nature::Custom(..) => metadata::dns_subdomain_problems(&masked),
        }
    }

    /// How many seconds an object is given to end by itself; `None` for kinds that are not asked.
    pub(crate) fn grace_period(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        self.builtin_kind()?.grace_period(object, asked)
    }

    /// What becomes of an object that is to be deleted.
    pub(crate) fn prepare_delete(&self, object: &mut Value, now: &str) {
        if self.is_crd() {
            crd::deletion::begin(object, now);
        }
        if let Some(kind) = self.builtin_kind() {
            kind.prepare_for_delete(object);
        }
    }

    /// Whether something else than finalizers in its metadata keeps an object from being deleted.
    pub(crate) fn is_held(&self, object: &Value) -> bool {
        self.builtin_kind().is_some_and(|kind| kind.is_held(object))
    }

    /// Whether the last state of a deleted object is sent, rather than that it is gone.
    pub(crate) fn returns_deleted(&self) -> bool {
        self.builtin_kind().is_some_and(|kind| kind.returns_deleted)
    }

    /// Lays a patch over an object, lists merged by the rules of the kind.
    pub(crate) fn merge_strategically(&self, object: &Value, patch: &Value) -> Result<Value, StatusError> {
        let mut merged =
            patch::strategic(object.clone(), patch, self.shape()).map_err(|error| match error {
                Error::NotAPatch(message) => StatusError::bad_request(message),
                error => StatusError::untyped(error.to_string()),
            })?;
        // `$patch: replace` replaces everything but what the object is.
        if let Some(fields) = merged.as_object_mut() {
            for field in ["apiVersion", "kind"] {
                if let Some(value) = object.get(field).filter(|_| !fields.contains_key(field)) {
                    fields.insert(field.to_owned(), value.clone());
                }
            }
        }
        Ok(merged)
    }

    /// The shape of its objects: which lists are sets or maps, who can own what.
    pub(crate) fn shape(&self) -> &Shape {
        self.shape.get_or_init(|| {
            let read = match &self.nature {
                Nature::Builtin(kind) => Shape::read(kind.definition()),
                Nature::Custom(installed, index) => {
                    Shape::of_custom_resource(&installed.definition.versions[*index].openapi)
                }
            };
            // What makes no sense is refused when a definition is written; whatever it is, objects have some shape.
            read.unwrap_or_else(|_| Shape::deduced())
        })
    }

    /// What clients of it are told.
    pub(crate) fn deprecation(&self) -> Option<&'static str> {
        self.builtin_kind()?.deprecation
    }

    /// The answer to a verb that makes no sense here.
    pub(crate) fn unknown_verb(&self, verb: Verb) -> StatusError {
        match self.builtin_kind() {
            Some(_) => StatusError::unknown_method(),
            None => StatusError::method_not_allowed(self.subject(), verb.text()),
        }
    }

    /// Refuses an object that says it is of another kind or version. `body` gives what was sent, to be quoted.
    pub(crate) fn check_kind<'b>(
        &self,
        object: &Value,
        body: impl FnOnce() -> Cow<'b, str>,
    ) -> Result<(), StatusError> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, version) = (text("kind"), text("apiVersion"));
        if (kind, version) == (self.kind.as_str(), self.api_version.as_str()) {
            return Ok(());
        }
        let body = &body();
        if let Some((installed, served)) = self.custom_version() {
            let definition = &installed.definition;
            if let Some(message) = crd::object::refuse(definition, served, object, body) {
                return Err(StatusError::bad_request(message));
            }
            let errors = crd::object::check_type(definition, served, object);
            let subject = Subject { group: &self.group, name: kind };
            return Err(StatusError::invalid(subject, meta::name(object), &errors));
        }
        if !object.is_object() && !object.is_null() {
            let problem = crd::object::not_an_object(object);
            let message = format!(
                "the object provided is unrecognized (must be of type {}): {problem} ({})",
                self.kind,
                crd::object::summary(body)
            );
            return Err(StatusError::bad_request(message));
        }
        if (kind.is_empty() || kind == self.kind) && (version.is_empty() || version == self.api_version) {
            return Ok(());
        }
        let (group, short) = version.split_once('/').unwrap_or(("", version));
        let (kind, short) =
            (if kind.is_empty() { &self.kind } else { kind }, if short.is_empty() { "v1" } else { short });
        let problem = match watchkeeper_kinds::find_kind(group, short, kind) {
            Some(_) => format!(
                "converting ({short}.{kind}) to ({}.{}): unknown conversion",
                self.package(),
                self.kind
            ),
            None => {
                format!("no kind {kind:?} is registered for version {version:?} in scheme \"watchkeeper\"")
            }
        };
        Err(StatusError::bad_request(format!(
            "{kind} in version {short:?} cannot be handled as a {}: {problem}",
            self.kind
        )))
    }

    /// The Go type of its lists, as messages of kube-apiserver name it.
    pub(crate) fn go_list_type(&self) -> String {
        match self.builtin_kind() {
            Some(_) => format!("*{}.{}", self.package(), self.list_kind),
            None => "*unstructured.UnstructuredList".to_owned(),
        }
    }

    /// What kube-apiserver calls the package of its kind.
    fn package(&self) -> &str {
        match self.group.split('.').next() {
            Some("") | None => "core",
            Some("rbac") => "rbac",
            Some(first) => first,
        }
    }
}

/// Errors of the metadata in the words that built-in kinds have for them.
fn worded(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    const OWNERS: &str = "metadata.ownerReferences[";
    for error in &mut errors {
        let Some((_, field)) = error.field.strip_prefix(OWNERS).and_then(|rest| rest.split_once("].")) else {
            continue;
        };
        if error.reason == Reason::Required {
            let at = Path::root().child("metadata").child("ownerReferences").child(field);
            *error = FieldError::invalid(&at, "", std::mem::take(&mut error.detail));
        }
    }
    errors
}

/// Finalizers that do not say whose they are.
fn unqualified(object: &Value) -> Vec<FieldError> {
    let finalizers = meta::finalizers(object).into_iter().enumerate();
    let unqualified = finalizers.filter(|(_, name)| {
        !name.contains('/') && !matches!(*name, "orphan" | "foregroundDeletion" | "kubernetes")
    });
    let error = |(index, name): (usize, &str)| {
        let at = Path::root().child("metadata").child("finalizers").index(index);
        FieldError::invalid(&at, name, "name is neither a standard finalizer name nor is it fully qualified")
    };
    unqualified.map(error).collect()
}

/// What of the metadata may not change.
fn metadata_update_errors(new: &Value, old: &Value) -> Vec<FieldError> {
    let at = Path::root().child("metadata");
    let mut errors = Vec::new();
    if meta::is_deleting(old) {
        let known = meta::finalizers(old);
        let added: Vec<String> = meta::finalizers(new)
            .into_iter()
            .filter(|name| !known.contains(name))
            .map(|name| format!("{name:?}"))
            .collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(FieldError::forbidden(&at.child("finalizers"), detail));
        }
    }
    for field in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let (new, old) = (meta::get(new, field), meta::get(old, field));
        if new != old {
            let value = new
                .cloned()
                .unwrap_or_else(|| if field.ends_with("Seconds") { Value::Null } else { "".into() });
            errors.push(FieldError::invalid(&at.child(field), value, "field is immutable"));
        }
    }
    errors.extend(metadata::validate(&new["metadata"], &at));
    errors
}
