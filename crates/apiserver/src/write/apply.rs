//! Server-side apply.

use serde_json::Value;
use watchkeeper_schema::json::{self, Decoded};
use watchkeeper_schema::managed::{self, ApplyError, Request};
use watchkeeper_schema::{Error, yaml};

use super::update::Next;
use super::{Incoming, Manner, Part, Place, Written};
use crate::failure::Failure;
use crate::meta;
use crate::resource::Resource;
use crate::server::Server;

/// All that a manager has to say about an object.
pub(crate) struct Applying {
    object: Value,
    complaints: Vec<String>,
    /// Whether fields are taken from those who manage them.
    force: bool,
}

impl Applying {
    /// Reads the body of a request.
    pub(crate) fn read(resource: &Resource, body: &[u8], force: bool) -> Result<Self, Failure> {
        let decoded = match plain_json(body) {
            Some(decoded) => decoded,
            None => yaml::decode(body).map_err(|error| match error {
                Error::TooLarge => Failure::too_large(&error.to_string()),
                error => Failure::bad_request(format!("error decoding YAML: {error}")),
            })?,
        };
        if !decoded.value.is_object() {
            return Err(Failure::bad_request("error decoding YAML: the body is not an object"));
        }
        resource.check_kind(&decoded.value, || decoded.value.to_string().into())?;
        Ok(Self { object: decoded.value, complaints: decoded.complaints, force })
    }
}

/// Reads a body that is JSON, as what most clients call YAML is, and says the same as YAML: nothing in it is there twice, and no
/// number has a fraction or an exponent. Reading YAML takes several times as long.
fn plain_json(body: &[u8]) -> Option<Decoded> {
    fn is_plain(value: &Value) -> bool {
        match value {
            Value::Number(number) => !number.is_f64(),
            Value::Array(items) => items.iter().all(is_plain),
            Value::Object(fields) => fields.values().all(is_plain),
            _ => true,
        }
    }
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let decoded = is_object.then(|| json::decode(body).ok()).flatten()?;
    (decoded.complaints.is_empty() && is_plain(&decoded.value)).then_some(decoded)
}

impl Server {
    /// Makes an object, or a part of it, be as a manager says, as far as it is theirs to say.
    pub(crate) async fn apply(
        &self,
        place: &Place,
        part: Part,
        applying: &Applying,
        manner: &Manner,
    ) -> Result<Written, Failure> {
        super::update::check_place(place, &applying.object)?;
        let manner = Manner { is_apply: true, ..manner.clone() };
        for _ in 0..super::ATTEMPTS {
            let exists = self.storage.get(&place.key(), None).await?.entry.is_some();
            let outcome = if exists {
                let next = |current: &Value| self.merge(place, part, Some(current), applying, &manner);
                self.modify(place, part, &manner, next).await
            } else {
                self.create_applied(place, part, applying, &manner).await
            };
            match outcome {
                // It appeared, or went away, in the meantime.
                Err(failure) if failure.reason == "NotFound" && exists => continue,
                Err(failure) if failure.reason == "AlreadyExists" && !exists => continue,
                outcome => return outcome,
            }
        }
        Err(Failure::modified(place.resource.subject(), &place.name))
    }

    async fn create_applied(
        &self,
        place: &Place,
        part: Part,
        applying: &Applying,
        manner: &Manner,
    ) -> Result<Written, Failure> {
        let uid = meta::uid(&applying.object);
        if part != Part::Main {
            return Err(place.not_found());
        }
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Failure::conflict(place.resource.subject(), &place.name, &why));
        }
        self.check_create(place, manner)?;
        let Next { mut object, warnings } = self.merge(place, part, None, applying, manner)?;
        if meta::name(&applying.object).is_empty() {
            return Err(super::update::no_name(place));
        }
        super::update::forget_version(&mut object)?;
        self.create(place, Incoming { object, warnings }, manner).await
    }

    /// What becomes of the object.
    fn merge(
        &self,
        place: &Place,
        part: Part,
        live: Option<&Value>,
        applying: &Applying,
        manner: &Manner,
    ) -> Result<Next, Failure> {
        let resource = &place.resource;
        let merge = |request: &Request<'_>| managed::apply(request, live, &applying.object, applying.force);
        let applied = self.as_manager(resource, part, manner, merge).map_err(|error| match error {
            ApplyError::Conflicts(conflicts) => Failure::apply_conflict(&conflicts),
            ApplyError::Failed(Error::NotApplicable(message)) => Failure::bad_request(message),
            ApplyError::Failed(error) => Failure::untyped(error.to_string()),
        })?;
        let Incoming { object, warnings } =
            Incoming::of(resource, applied.object, applying.complaints.clone(), manner)?;
        Ok(Next { object, warnings })
    }
}
