//! The number of replicas, for those who know nothing else about a kind.

use serde_json::Value;
use watchkeeper_schema::managed::{self, FieldPath, FieldSet, ManagedFields, Request, scale as owned};
use watchkeeper_schema::{FieldError, Path, Shape};
use watchkeeper_wire::LabelSelector;

use super::update::Next;
use super::{Manner, Part, Patch, Place, Written};
use crate::definition::ScalePaths;
use crate::definition::scale::{self, ScaleError};
use crate::failure::{Failure, Subject};
use crate::meta;
use crate::resource::{Nature, Resource};
use crate::server::Server;

impl From<ScaleError> for Failure {
    fn from(error: ScaleError) -> Self {
        match error {
            ScaleError::BadRequest(message) => Self::bad_request(message),
            ScaleError::Missing(message) | ScaleError::WrongType(message) => Self::internal(message),
        }
    }
}

/// Refuses a Scale that is none, or that of another object.
fn check(place: &Place, change: &ScaleChange, scale: &Value) -> Result<(), Failure> {
    if let Some((kind, problem)) = problem(scale) {
        return Err(match change {
            ScaleChange::Replace(_) => Failure::bad_request(format!(
                "{kind} in version \"v1\" cannot be handled as a Scale: {problem}"
            )),
            ScaleChange::Patch(_) => {
                let at = Path::root().child("patch");
                let error = FieldError::invalid(&at, scale.to_string(), problem);
                Failure::invalid(Subject { group: "", name: "" }, "", &[error])
            }
        });
    }
    super::update::check_place(place, scale)?;
    if meta::name(scale).is_empty() { Err(super::update::no_name(place)) } else { Ok(()) }
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

    /// The Scale of an object.
    pub(crate) fn scale(&self, object: &Value) -> Result<Value, Failure> {
        let paths = self.scale_paths().ok_or_else(Failure::no_such_path)?;
        Ok(match &self.nature {
            Nature::Custom(..) => scale::read(&paths, object)?,
            Nature::Builtin(_) => builtin(&paths, object)?,
        })
    }
}

impl Server {
    /// Changes the number of replicas of an object. Returns the Scale.
    pub(crate) async fn rescale(
        &self,
        place: &Place,
        change: &ScaleChange,
        manner: &Manner,
    ) -> Result<Written, Failure> {
        let resource = &place.resource;
        let paths = resource.scale_paths().ok_or_else(Failure::no_such_path)?;
        let next = |current: &Value| {
            let before = match &resource.nature {
                Nature::Custom(..) => scale::read_to_write(&paths, current)?,
                Nature::Builtin(_) => builtin(&paths, current)?,
            };
            let after = match change {
                ScaleChange::Replace(scale) => scale.clone(),
                ScaleChange::Patch(patch) => patch.apply_to_scale(&before)?,
            };
            check(place, change, &after)?;
            let replicas = after["spec"]["replicas"].as_i64().unwrap_or_default();
            if replicas < 0 && matches!(resource.nature, Nature::Builtin(_)) {
                let at = Path::root().child("spec").child("replicas");
                let error = FieldError::invalid(&at, replicas, "must be greater than or equal to 0");
                let subject = Subject { group: "autoscaling", name: "Scale" };
                return Err(Failure::invalid(subject, &place.name, &[error]));
            }
            let mut object = scale::write(&paths, current, &after)?;
            self.manage_scaled(place, &paths, [&before, &after], current, &mut object, manner);
            Ok(Next { object, warnings: Vec::new() })
        };
        let manner = Manner { is_apply: true, ..manner.clone() };
        let written = self.modify(place, Part::Main, &manner, next).await?;
        let object = match &resource.nature {
            Nature::Custom(..) => scale::read_written(&paths, &written.object)?,
            Nature::Builtin(_) => builtin(&paths, &written.object)?,
        };
        Ok(Written { object, ..written })
    }

    /// Records who changed the number of replicas: those who own it own the Scale, and the other way round.
    fn manage_scaled(
        &self,
        place: &Place,
        paths: &ScalePaths,
        [before, after]: [&Value; 2],
        current: &Value,
        object: &mut Value,
        manner: &Manner,
    ) {
        let path = |_: &str| Some(FieldPath::of(paths.spec.trim_start_matches('.').split('.')));
        let Ok(owners) = ManagedFields::read(current) else { return };
        let (mut live, mut new) = (before.clone(), after.clone());
        owned::from_parent(&owners, path).write(&mut live);
        meta::copy(&mut new, &live, "managedFields");
        let request = Request {
            versions: &Shape::deduced(),
            api_version: "autoscaling/v1",
            kind: "Scale",
            subresource: "scale",
            manager: &manner.manager,
            now: &self.options.clock.stamp(),
            reset: &FieldSet::default(),
        };
        let new = managed::update_or_clear(&request, &live, new);
        if let Ok(scale) = ManagedFields::read(&new) {
            owned::to_parent(&owners, &scale, &place.resource.api_version, path).write(object);
        }
    }
}

/// The Scale of an object of a built-in kind, whose selector is no text.
fn builtin(paths: &ScalePaths, object: &Value) -> Result<Value, Failure> {
    let mut made = scale::read_written(paths, object)?;
    let selector = object["spec"].get("selector");
    let text = match selector.and_then(Value::as_object) {
        Some(fields) if !fields.contains_key("matchLabels") && !fields.contains_key("matchExpressions") => {
            let pairs =
                fields.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
            pairs.collect::<Vec<_>>().join(",")
        }
        Some(_) => LabelSelector::from_object(selector).map_err(Failure::internal)?.to_string(),
        None => String::new(),
    };
    if !text.is_empty() {
        made["status"]["selector"] = text.into();
    }
    Ok(made)
}
