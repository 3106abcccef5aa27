use crate::default::{child, text};
use crate::kind::row::{FINALIZE, STATUS, field, kind};
use crate::kind::strategy::Fields;
use crate::prepare::{keep, object};
use crate::validate::field::{Errors, Field};
use crate::{Kind, NameRule, Subresource, Verbs};
use serde_json::{Value, json};
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::label_key_problems;

pub(crate) const KIND: Kind = kind("", "v1", "Namespace", "namespaces", "namespace")
    .short(&["ns"])
    .cluster_wide()
    .verbs(Verbs::NoDeleteCollection)
    .with(&[FINALIZE, STATUS])
    .named(NameRule::DnsLabel)
    .selectable(&[field("status.phase", "")])
    .returns_deleted()
    .default_with(default)
    .prepare_create(prepare_create)
    .prepare_update(prepare_update)
    .validate_with(validate)
    .validate_subresources(&[(Subresource::Finalize, validate_finalizers)])
    .prepare_delete(prepare_delete)
    .held_while(is_held)
    .table(table::TABLE);

/// Every namespace with a name has it as a label too.
fn default(fields: &mut Fields) {
    let Some(metadata) = child(fields, "metadata") else { return };
    let name = text(metadata, "name").to_owned();
    if !name.is_empty()
        && let Some(labels) = child(metadata, "labels")
    {
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

fn prepare_create(fields: &mut Fields) {
    fields.insert("status".into(), json!({"phase": "Active"}));
    let finalizers = object(fields, "spec").entry("finalizers").or_insert(Value::Null);
    match finalizers {
        Value::Array(finalizers) if finalizers.iter().any(|finalizer| finalizer == "kubernetes") => {}
        Value::Array(finalizers) => finalizers.push("kubernetes".into()),
        none => *none = json!(["kubernetes"]),
    }
}

fn prepare_update(new: &mut Fields, old: &Fields) {
    let finalizers = old.get("spec").and_then(Value::as_object);
    keep(object(new, "spec"), finalizers, "finalizers");
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let finalizers = object.get("spec").get("finalizers");
    for finalizer in finalizers.items().map(|finalizer| finalizer.text()) {
        for problem in label_key_problems(finalizer) {
            errors.push(FieldError::invalid(&finalizers.at, finalizer, problem));
        }
        if !finalizer.contains('/') && finalizer != "kubernetes" {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&finalizers.at, finalizer, detail));
        }
    }
}

/// What holds a namespace, when that is all that is written.
fn validate_finalizers(object: &Field<'_>, _: &Field<'_>, errors: &mut Errors) {
    for finalizer in object.get("spec").get("finalizers").items() {
        label_key_problems(finalizer.text())
            .into_iter()
            .for_each(|problem| finalizer.invalid(problem, errors));
        if !finalizer.text().contains('/') && finalizer.text() != "kubernetes" {
            finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified", errors);
        }
    }
}

fn prepare_delete(namespace: &mut Value) {
    namespace["status"]["phase"] = "Terminating".into();
}

/// Finalizers of its spec hold a namespace as well as those of its metadata.
fn is_held(namespace: &Value) -> bool {
    namespace["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

mod table {
    use watchkeeper_table::layout::{AGE, Fields, Layout, NAME, text};

    pub(super) const TABLE: Layout = Layout::new(
        &[NAME, text("Status", "Whether the namespace is in use or being deleted."), AGE],
        |view| vec![view.name(), view.object.text_or("status.phase", "Active").into(), view.age()],
    );
}
