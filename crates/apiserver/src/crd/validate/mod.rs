//! Which definitions the server takes.

mod columns;
mod conversion;
mod internal;
mod labels;
mod metadata;
mod names;
mod schemas;
mod selectable;
mod spec;
mod status;
mod subresources;
mod versions;

use super::approval::{self, ANNOTATION, Approval};
use super::bundle;
use super::conditions::is_true;
use super::field::{deep, text, texts};
use serde_json::Value;
use spec::Spec;
use watchkeeper_schema::{FieldError, Path};

/// What is wrong with a definition that has been prepared, to be created or to replace `old`; nothing if the list is empty.
///
/// Texts, fields and order are those of kube-apiserver, which reports in a form of the object of its own: what all
/// versions say alike is reported at the top of the spec (`spec.validation.openAPIV3Schema`,
/// `spec.additionalPrinterColumns[0].JSONPath`), and the webhook at `spec.conversion.webhookClientConfig`.
///
/// What an update may keep because it was there before: unknown conversion review versions, a bad `caBundle`, too many
/// selectable fields, a version without a schema, a missing approval. Mistakes in schemas are never kept, since no
/// definition with one gets in.
///
/// Not covered: CEL rules are not compiled. See [`watchkeeper_schema::Schema::check`].
pub(crate) fn validate(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = Spec::read(new);
    let at = Path::root().child("spec");
    let mut errors = match old {
        Some(old) => metadata::update(new, old),
        None => metadata::create(new, &format!("{}.{}", text(spec.names, "plural"), spec.group)),
    };
    let kept = Kept::from(new, old);
    versions::check(&spec, &kept, &at, &mut errors);
    if let Some(old) = old {
        immutable(&spec, old, &at, &mut errors);
    }
    status::check(new, &mut errors);
    status::stored_versions(new, &spec, &mut errors);
    approved(new, old, &mut errors);
    let was_preserving = old.is_some_and(|old| Spec::read(old).preserve_unknown);
    if spec.preserve_unknown && !was_preserving {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&at.child("preserveUnknownFields"), true, detail));
    }
    errors
}

/// What is wrong with a definition whose status is to be written.
pub(crate) fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = metadata::update(new, old);
    status::check(new, &mut errors);
    errors
}

/// What an update may leave as bad as it was.
struct Kept {
    schemas: bool,
    review_versions: bool,
    bundle: bool,
    /// The versions with too many selectable fields; the empty name stands for all versions.
    selectable: Vec<String>,
}

impl Kept {
    fn from(new: &Value, old: Option<&Value>) -> Self {
        let Some(old) = old else {
            return Self { schemas: false, review_versions: false, bundle: true, selectable: Vec::new() };
        };
        let old_spec = Spec::read(old);
        let has_schemas = old_spec.shared.openapi().is_some()
            || old_spec.versions().iter().all(|version| version.parts.openapi().is_some());
        let webhook = deep(old, &["spec", "conversion", "webhook"]);
        let review_versions =
            webhook.map(|webhook| texts(webhook, "conversionReviewVersions")).unwrap_or_default();
        let bundle = webhook.and_then(|webhook| deep(webhook, &["clientConfig", "caBundle"]));
        Self {
            schemas: !has_schemas,
            review_versions: !review_versions.is_empty()
                && !review_versions
                    .iter()
                    .any(|version| conversion::REVIEW_VERSIONS.contains(&version.as_str())),
            bundle: !is_true(old, "Established") || bundle.and_then(bundle::problem).is_some(),
            selectable: selectable::unchanged_excess(&Spec::read(new), &old_spec),
        }
    }
}

/// A resource stays where it is: group and plural are its name, scope and kind are in every stored object.
fn immutable(spec: &Spec<'_>, old: &Value, at: &Path, errors: &mut Vec<FieldError>) {
    let old_spec = Spec::read(old);
    let names = at.child("names");
    let (new_kind, old_kind) = (text(spec.names, "kind"), text(old_spec.names, "kind"));
    let (new_plural, old_plural) = (text(spec.names, "plural"), text(old_spec.names, "plural"));
    let established = is_true(old, "Established");
    for (applies, new, old, at) in [
        (established, spec.scope, old_spec.scope, at.child("scope")),
        (established, new_kind, old_kind, names.child("kind")),
        (true, spec.group, old_spec.group, at.child("group")),
        (true, new_plural, old_plural, names.child("plural")),
    ] {
        if applies && new != old {
            errors.push(FieldError::invalid(&at, new, "field is immutable"));
        }
    }
}

/// Groups of Kubernetes need an approval; one that has none already may go on without.
fn approved(new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some((approval, reason)) = approval::of(new) else {
        return;
    };
    if old.is_some_and(|old| approval::said(old) == approval) {
        return;
    }
    let at = Path::root().child("metadata").child("annotations").key(ANNOTATION);
    match approval {
        Approval::Approved | Approval::Bypassed => {}
        Approval::Missing => errors.push(FieldError::required(&at, reason)),
        Approval::Invalid => errors.push(FieldError::invalid(&at, approval::annotation(new), reason)),
    }
}

/// A list of problems with one value as one error.
fn joined(at: &Path, value: &str, problems: &[String]) -> Option<FieldError> {
    (!problems.is_empty()).then(|| FieldError::invalid(at, value, problems.join(",")))
}
