//! The number of replicas, for those who know nothing else about a kind.

use std::sync::LazyLock;

use serde_json::{Value, json};
use watchkeeper_schema::managed::{self, FieldPath, FieldSet, ManagedFields, Request, scale as owned};
use watchkeeper_schema::{FieldError, Path, Shape};
use watchkeeper_wire::LabelSelector;

use super::{Applying, Operation, Patch, based_on, check_target, no_name};
use crate::crd::ScalePaths;
use crate::crd::scale::{self, ScaleError};
use crate::object::meta;
use crate::resource::{Nature, ObjectRef, Resource};
use crate::status_error::{StatusError, Subject};
use crate::write::WriteRequest;
use crate::write::request::{Current, Draft, Moment};

impl From<ScaleError> for StatusError {
    fn from(error: ScaleError) -> Self {
        match error {
            ScaleError::BadRequest(message) => Self::bad_request(message),
            ScaleError::Missing(message) | ScaleError::WrongType(message) => Self::internal(message),
        }
    }
}

/// Refuses a Scale that is none, or that of another object.
fn check(target: &ObjectRef, change: &ScaleChange, scale: &Value) -> Result<(), StatusError> {
    if let Some((kind, problem)) = problem(scale) {
        return Err(match change {
            ScaleChange::Replace(_) => StatusError::bad_request(format!(
                "{kind} in version \"v1\" cannot be handled as a Scale: {problem}"
            )),
            ScaleChange::Patch(_) | ScaleChange::Apply(_) => {
                let at = Path::root().child("patch");
                let error = FieldError::invalid(&at, scale.to_string(), problem);
                StatusError::invalid(Subject { group: "", name: "" }, "", &[error])
            }
        });
    }
    check_target(target, scale)?;
    if meta::name(scale).is_empty() { Err(no_name(target)) } else { Ok(()) }
}

/// What it says it is, and why it cannot be read as a Scale, as Go says it.
fn problem(scale: &Value) -> Option<(&str, String)> {
    let text = |field: &str| scale.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if !["", "Scale"].contains(&kind) || !["", "autoscaling/v1"].contains(&version) {
        let problem =
            format!("no kind {kind:?} is registered for version {version:?} in scheme \"watchkeeper\"");
        return Some((kind, problem));
    }
    let wrong = |found: &Value, into: &str, wanted: &str| {
        let found = match found {
            Value::Null => return None,
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) => format!("number {number}"),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        Some(("Scale", format!("json: cannot unmarshal {found} into {into} of type {wanted}")))
    };
    if !scale.is_object() {
        return wrong(scale, "Go value", "v1.Scale").or_else(|| Some(("Scale", "it is empty".to_owned())));
    }
    for (field, wanted) in [("metadata", "v1.ObjectMeta"), ("spec", "v1.ScaleSpec")] {
        let found = &scale[field];
        if !found.is_object()
            && let Some(problem) = wrong(found, &format!("Go struct field Scale.{field}"), wanted)
        {
            return Some(problem);
        }
    }
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        let found = &scale["metadata"][field];
        let into = format!("Go struct field ObjectMeta.metadata.{field}");
        if !found.is_string()
            && let Some(problem) = wrong(found, &into, "string")
        {
            return Some(problem);
        }
    }
    let replicas = &scale["spec"]["replicas"];
    match replicas.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) {
        true => None,
        false => wrong(replicas, "Go struct field ScaleSpec.spec.replicas", "int32"),
    }
}

/// How a Scale is to be changed.
pub(crate) enum ScaleChange {
    /// To this.
    Replace(Value),
    /// By this.
    Patch(Patch),
    /// To what its manager says about it.
    Apply(Applying),
}

impl Resource {
    /// Where the numbers stand.
    fn scale_paths(&self) -> Option<ScalePaths> {
        match &self.nature {
            Nature::Builtin(kind) => kind.scale.map(|paths| ScalePaths {
                spec: paths.spec_replicas.into(),
                status: paths.status_replicas.into(),
                selector: None,
            }),
            Nature::Custom(installed, index) => installed.definition.versions[*index].scale.clone(),
        }
    }

    /// The Scale of an object that was just written; an object without replicas has 0.
    pub(crate) fn written_scale(&self, object: &Value) -> Result<Value, StatusError> {
        let paths = self.scale_paths().ok_or_else(StatusError::no_such_path)?;
        Ok(match &self.nature {
            Nature::Custom(..) => scale::read_written(&paths, object)?,
            Nature::Builtin(_) => builtin(&paths, object)?,
        })
    }

    /// The Scale of an object.
    pub(crate) fn scale(&self, object: &Value) -> Result<Value, StatusError> {
        let paths = self.scale_paths().ok_or_else(StatusError::no_such_path)?;
        Ok(match &self.nature {
            Nature::Custom(..) => scale::read(&paths, object)?,
            Nature::Builtin(_) => builtin(&paths, object)?,
        })
    }
}

impl ScaleChange {
    /// The Scale that is wanted.
    pub(super) fn next(
        &self,
        request: &WriteRequest<'_>,
        old: &Value,
        moment: &Moment,
    ) -> Result<Draft, StatusError> {
        let target = &request.target;
        let before = scale_to_write(&target.resource, old)?;
        let after = match self {
            Self::Replace(scale) => scale.clone(),
            Self::Patch(patch) => patch.apply_to_scale(&before)?,
            Self::Apply(applying) => applied(request, applying, before, old, moment)?,
        };
        check(target, self, &after)?;
        let replicas = after["spec"]["replicas"].as_i64().unwrap_or_default();
        if replicas < 0 && matches!(target.resource.nature, Nature::Builtin(_)) {
            let at = Path::root().child("spec").child("replicas");
            let error = FieldError::invalid(&at, replicas, "must be greater than or equal to 0");
            let subject = Subject { group: "autoscaling", name: "Scale" };
            return Err(StatusError::invalid(subject, &target.name, &[error]));
        }
        Ok(Draft::of(after))
    }
}

/// A Scale with what is applied merged into it, and its owners.
fn applied(
    request: &WriteRequest<'_>,
    applying: &Applying,
    mut live: Value,
    parent: &Value,
    moment: &Moment,
) -> Result<Value, StatusError> {
    let paths = request.target.resource.scale_paths().ok_or_else(StatusError::no_such_path)?;
    let owners = ManagedFields::read(parent).unwrap_or_default();
    owned::from_parent(&owners, |_| Some(replicas(&paths))).write(&mut live);
    let made = managed::apply(
        &as_manager(&request.context.manager, moment),
        Some(&live),
        applying.object(),
        applying.is_forced(),
    );
    Ok(made.map_err(StatusError::from)?.object)
}

/// The object with the replicas of a Scale.
pub(super) fn laid_into(
    request: &WriteRequest<'_>,
    current: &Current,
    old: &Value,
    scale: &Value,
    moment: &Moment,
) -> Result<Value, StatusError> {
    let WriteRequest { target, context, .. } = request;
    let paths = target.resource.scale_paths().ok_or_else(StatusError::no_such_path)?;
    let before = scale_to_write(&target.resource, old)?;
    let mut object = scale::write(&paths, old, scale)?;
    if let Operation::Scale(ScaleChange::Apply(_)) = &request.operation {
        let owners = ManagedFields::read(old).unwrap_or_default();
        if let Ok(scale) = ManagedFields::read(scale) {
            let path = |_: &str| Some(replicas(&paths));
            owned::to_parent(&owners, &scale, &target.resource.api_version, path).write(&mut object);
        }
    } else {
        record_scaled(target, &paths, [&before, scale], old, &mut object, &context.manager, moment);
    }
    Ok(based_on(request, current, object)?.object)
}

/// The Scale of an object, to be changed.
fn scale_to_write(resource: &Resource, object: &Value) -> Result<Value, StatusError> {
    let paths = resource.scale_paths().ok_or_else(StatusError::no_such_path)?;
    Ok(match &resource.nature {
        Nature::Custom(..) => scale::read_to_write(&paths, object)?,
        Nature::Builtin(_) => builtin(&paths, object)?,
    })
}

/// Records the owner of the number of replicas: owners of the field own it in the Scale, and the other way round.
fn record_scaled(
    target: &ObjectRef,
    paths: &ScalePaths,
    [before, after]: [&Value; 2],
    current: &Value,
    object: &mut Value,
    manager: &str,
    moment: &Moment,
) {
    let path = |_: &str| Some(replicas(paths));
    let Ok(owners) = ManagedFields::read(current) else { return };
    let (mut live, mut new) = (before.clone(), after.clone());
    owned::from_parent(&owners, path).write(&mut live);
    meta::copy(&mut new, &live, "managedFields");
    let new = managed::update_or_clear(&as_manager(manager, moment), &live, new);
    if let Ok(scale) = ManagedFields::read(&new) {
        owned::to_parent(&owners, &scale, &target.resource.api_version, path).write(object);
    }
}

/// Where the number of replicas is in an object.
fn replicas(paths: &ScalePaths) -> FieldPath {
    FieldPath::of(paths.spec.trim_start_matches('.').split('.'))
}

/// What Scales look like.
static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
    let metadata = watchkeeper_kinds::find_kind("", "v1", "ConfigMap")
        .map(|kind| kind.definition()["properties"]["metadata"].clone())
        .unwrap_or_default();
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer", "format": "int32"}));
    let schema = json!({"type": "object", "properties": {
        "apiVersion": text, "kind": text, "metadata": metadata,
        "spec": {"type": "object", "properties": {"replicas": number}},
        "status": {"type": "object", "properties": {"replicas": number, "selector": text}},
    }});
    Shape::read(&schema).unwrap_or_else(|_| Shape::deduced())
});

/// How a Scale is written, in the name of a manager.
fn as_manager<'a>(manager: &'a str, moment: &'a Moment) -> Request<'a> {
    static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);
    Request {
        versions: &*SHAPE,
        api_version: "autoscaling/v1",
        kind: "Scale",
        subresource: "scale",
        manager,
        now: &moment.stamp,
        reset: &NOTHING,
    }
}

/// The Scale of an object of a built-in kind, whose selector is no text.
fn builtin(paths: &ScalePaths, object: &Value) -> Result<Value, StatusError> {
    let mut made = scale::read_written(paths, object)?;
    let selector = object["spec"].get("selector");
    let text = match selector.and_then(Value::as_object) {
        Some(fields) if !fields.contains_key("matchLabels") && !fields.contains_key("matchExpressions") => {
            let pairs =
                fields.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
            pairs.collect::<Vec<_>>().join(",")
        }
        Some(_) => LabelSelector::from_object(selector).map_err(StatusError::internal)?.to_string(),
        None => String::new(),
    };
    if !text.is_empty() {
        made["status"]["selector"] = text.into();
    }
    Ok(made)
}
