//! The number of replicas, for those who know nothing else about a kind.

use serde_json::Value;
use watchkeeper_schema::managed::{self, FieldPath, FieldSet, ManagedFields, Request, scale as owned};
use watchkeeper_schema::{FieldError, Path, Shape};

use super::update::Next;
use super::{Manner, Part, Patch, Place, Written};
use crate::definition::ScalePaths;
use crate::definition::scale::{self, ScaleError};
use crate::failure::{Failure, Subject};
use crate::meta;
use crate::request::label_selector::LabelSelector;
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
