//! Replacing objects.

use std::pin::pin;

use serde_json::{Value, json};
use watchkeeper_rbac::{About, Request};
use watchkeeper_schema::{FieldError, Path, managed};
use watchkeeper_storage::{Commit, Entry, Error};

use super::{Incoming, Manner, Part, Place, Reservation, Written, encode, version};
use crate::budget;
use crate::failure::{Failure, Subject};
use crate::meta;
use crate::server::Server;

/// The next state of an object.
pub(super) struct Next {
    pub(super) object: Value,
    pub(super) warnings: Vec<String>,
}

impl Server {
    /// Replaces an object, or a part of it.
    pub(crate) async fn update(
        &self,
        place: &Place,
        part: Part,
        incoming: Incoming,
        manner: &Manner,
    ) -> Result<Written, Failure> {
        check_place(place, &incoming.object)?;
        if meta::name(&incoming.object).is_empty() {
            return Err(no_name(place));
        }
        if part == Part::Main && place.resource.allows_create_on_update() {
            let exists = self.storage.get(&place.key(), None).await?.entry.is_some();
            if !exists && meta::uid(&incoming.object).is_empty() {
                self.check_create(place, manner)?;
                let mut incoming = incoming;
                forget_version(&mut incoming.object)?;
                return self.create(place, incoming, manner).await;
            }
        }
        let Incoming { object, warnings } = incoming;
        let uid = meta::uid(&object).to_owned();
        let next = |current: &Value| {
            check_precondition(place, "UID", &uid, meta::uid(current))?;
            Ok(Next { object: object.clone(), warnings: warnings.clone() })
        };
        self.modify(place, part, manner, next).await
    }

    /// Refuses to make an object for somebody who may only change those that are there.
    pub(super) fn check_create(&self, place: &Place, manner: &Manner) -> Result<(), Failure> {
        let Some(author) = &manner.author else { return Ok(()) };
        let about = About::Resource {
            group: &place.resource.group,
            resource: &place.resource.plural,
            subresource: "",
            namespace: place.namespace.as_deref().unwrap_or_default(),
            name: &place.name,
        };
        self.require(author, &Request { verb: "create", about })
    }

    /// Makes the next object of the current one, until nobody else was faster.
    pub(super) async fn modify(
        &self,
        place: &Place,
        part: Part,
        manner: &Manner,
        mut next: impl FnMut(&Value) -> Result<Next, Failure>,
    ) -> Result<Written, Failure> {
        let key = place.key();
        for _ in 0..super::ATTEMPTS {
            let Some(entry) = self.storage.get(&key, None).await?.entry else {
                return Err(place.not_found());
            };
            let claim = self.budget.stored(&entry).await;
            let attempt = pin!(self.attempt(place, part, manner, &entry, &mut next));
            if let Some(written) = budget::run_here(claim, attempt).await? {
                return Ok(written);
            }
        }
        Err(Failure::modified(place.resource.subject(), &place.name))
    }

    /// Makes the next object of an entry; `None` if somebody else was faster.
    async fn attempt(
        &self,
        place: &Place,
        part: Part,
        manner: &Manner,
        entry: &Entry,
        next: &mut impl FnMut(&Value) -> Result<Next, Failure>,
    ) -> Result<Option<Written>, Failure> {
        let old = place.resource.read(entry)?;
        let Next { mut object, mut warnings } = next(&old)?;
        check_version(place, &mut object, entry)?;
        self.check_escalation(place, &object, Some(&old), manner)?;
        let turn = self.turn(&place.resource).await;
        let reservation = self.prepare(place, part, &mut object, &old, manner)?;
        warnings.extend(super::remarks(&place.resource, &object, Some(&old)));
        let written = Written { object, revision: None, created: false, warnings };
        match self.replace(place, entry, &old, written, manner, reservation).await {
            Err(Error::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
            Ok(Err(failure)) => Err(failure),
            Ok(Ok(written)) => {
                if let Some(revision) = written.revision {
                    self.after_write(&place.resource, revision).await;
                }
                drop(turn);
                Ok(Some(written))
            }
        }
    }

    /// Puts a pod on the node of a Binding, once. The pod gets the labels and annotations of the Binding.
    pub(crate) async fn assign(
        &self,
        place: &Place,
        binding: &Value,
        manner: &Manner,
    ) -> Result<(), Failure> {
        check_binding(binding)?;
        let now = self.options.clock.stamp();
        let next = |current: &Value| {
            check_precondition(place, "UID", meta::uid(binding), meta::uid(current))?;
            let version = |object| meta::text(object, "resourceVersion");
            check_precondition(place, "ResourceVersion", version(binding), version(current))?;
            let name = &place.name;
            let conflict = |why: String| {
                let subject = Subject { group: "", name: "pods/binding" };
                Err(Failure::conflict(subject, name, &why))
            };
            if meta::is_deleting(current) {
                return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
            }
            if let Some(known) = current["spec"]["nodeName"].as_str().filter(|known| !known.is_empty()) {
                return conflict(format!("pod {name} is already assigned to node {known:?}"));
            }
            if current["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
                return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
            }
            let mut object = current.clone();
            object["spec"]["nodeName"] = binding["target"]["name"].clone();
            meta::fields(&mut object["status"]).remove("nominatedNodeName");
            for field in ["labels", "annotations"] {
                for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
                    object["metadata"][field][key] = value.clone();
                }
            }
            let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
            match object["status"]["conditions"].as_array_mut() {
                Some(conditions) => {
                    conditions.retain(|condition| condition["type"] != "PodScheduled");
                    conditions.push(scheduled);
                }
                None => object["status"]["conditions"] = json!([scheduled]),
            }
            Ok(Next { object, warnings: Vec::new() })
        };
        self.modify(place, Part::Binding, manner, next).await.map(|_| ())
    }

    /// Changes a part of an object on behalf of the server itself; an object that is gone is no failure.
    pub(crate) async fn modify_internal(
        &self,
        place: &Place,
        part: Part,
        change: impl Fn(&mut Value),
    ) -> Result<(), Failure> {
        self.modify_by("watchkeeper", place, part, change).await
    }

    /// The same on behalf of a part of the server, whose fields they are then.
    pub(crate) async fn modify_by(
        &self,
        manager: &str,
        place: &Place,
        part: Part,
        change: impl Fn(&mut Value),
    ) -> Result<(), Failure> {
        let manner = Manner { manager: manager.into(), ..Manner::default() };
        let next = |current: &Value| {
            let mut object = current.clone();
            change(&mut object);
            Ok(Next { object, warnings: Vec::new() })
        };
        match self.modify(place, part, &manner, next).await {
            Err(failure) if failure.reason == "NotFound" => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Ok(()),
        }
    }

    /// Makes what was sent a valid successor of the old object. Returns what was reserved for it.
    fn prepare(
        &self,
        place: &Place,
        part: Part,
        new: &mut Value,
        old: &Value,
        manner: &Manner,
    ) -> Result<Option<Reservation>, Failure> {
        let resource = &place.resource;
        super::create::set_namespace(resource, new, place.namespace.as_deref())?;
        // Whoever puts a pod on a node owns nothing of it.
        if part != Part::Binding {
            self.manage_updated(place, part, new, old, manner);
        }
        // What admission adds is nobody's.
        crate::admission::admit_update(resource, part, new, old);
        crate::certificates::stamp_conditions(resource, part, new, old, &self.options.clock.stamp());
        resource.prepare_update(part, new, old);
        // What the server gives is nobody's. Only the object itself is given anything: its parts keep the spec.
        let reservation = match part {
            Part::Main => self.allocate(resource, new, Some(old), manner.dry_run)?,
            _ => None,
        };
        for field in ["uid", "name"] {
            if meta::text(new, field).is_empty() {
                meta::copy(new, old, field);
            }
        }
        for field in ["creationTimestamp", "deletionTimestamp", "selfLink"] {
            meta::copy(new, old, field);
        }
        if meta::get(new, "deletionGracePeriodSeconds").is_none() {
            meta::copy(new, old, "deletionGracePeriodSeconds");
        }
        let errors = resource.validate_update(part, new, old);
        if !errors.is_empty() {
            return Err(Failure::invalid(resource.kind_subject(), &place.name, &errors));
        }
        self.check_signer(place, part, new, old, manner)?;
        if resource.is_definitions() && !manner.dry_run {
            self.judge_names(resource, new);
        }
        Ok(reservation)
    }

    /// Commits the next object, or the end of it if nothing holds it any more.
    async fn replace(
        &self,
        place: &Place,
        entry: &Entry,
        old: &Value,
        mut written: Written,
        manner: &Manner,
        reservation: Option<Reservation>,
    ) -> Result<Result<Written, Failure>, Error> {
        let key = place.key();
        if managed::same_but_times(&written.object, old) {
            written.object = old.clone();
            return Ok(Ok(written));
        }
        let commit = Commit::new().unchanged(key.as_str(), entry.modified);
        let is_finished = is_finished(&place.resource, &written.object);
        let commit = if is_finished {
            commit.delete(key.as_str())
        } else {
            match encode(&place.resource, &written.object) {
                Ok(bytes) => commit.put(key.as_str(), bytes),
                Err(failure) => return Ok(Err(failure)),
            }
        };
        if manner.dry_run {
            return Ok(Ok(written));
        }
        let object = Some(&written.object).filter(|_| !is_finished);
        let committed = self.commit(&place.resource, &key, commit, object, reservation).await?;
        // Of an object that is gone, the answer is what was last said about it.
        if !is_finished {
            meta::set(&mut written.object, "resourceVersion", committed.revision.to_string());
        }
        Ok(Ok(Written { revision: Some(committed.revision), ..written }))
    }
}

/// Refuses a Binding that names no node.
fn check_binding(binding: &Value) -> Result<(), Failure> {
    let (at, target) = (Path::root().child("target"), &binding["target"]);
    let text = |field: &str| target[field].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(text("kind"), "" | "Node") {
        errors.push(FieldError::not_supported(&at.child("kind"), text("kind"), ["Node", "<empty>"]));
    }
    if text("name").is_empty() {
        errors.push(FieldError::required(&at.child("name"), ""));
    }
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::untyped(one.as_str())),
        several => Err(Failure::untyped(format!("[{}]", several.join(", ")))),
    }
}

/// Refuses to change an object that is not the one which the client means; any is, if it says nothing.
fn check_precondition(place: &Place, what: &str, asked: &str, found: &str) -> Result<(), Failure> {
    if asked.is_empty() || asked == found {
        return Ok(());
    }
    let key = place.shown_key();
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: {what} in precondition: {asked}, {what} in object meta: {found}"
    );
    Err(Failure::conflict(place.resource.subject(), &place.name, &why))
}

/// Whether an object is to be deleted and nothing holds it any more.
fn is_finished(resource: &crate::resource::Resource, object: &Value) -> bool {
    let grace = meta::get(object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    meta::is_deleting(object)
        && meta::finalizers(object).is_empty()
        && grace == 0
        && !resource.is_held(object)
}

/// Refuses an object that says it is another one than the path says.
pub(super) fn check_place(place: &Place, object: &Value) -> Result<(), Failure> {
    let name = meta::name(object);
    if !name.is_empty() && name != place.name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            place.name
        )));
    }
    let said = meta::text(object, "namespace");
    match &place.namespace {
        Some(namespace) if !said.is_empty() && said != namespace => Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
        _ => Ok(()),
    }
}

/// An object without a name was sent to where one has a name.
pub(super) fn no_name(place: &Place) -> Failure {
    Failure::bad_request(format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        place.name
    ))
}

/// Takes the version off an object that is made where one was to be changed. It does not matter, but has to be one.
pub(super) fn forget_version(object: &mut Value) -> Result<(), Failure> {
    meta::version_number(meta::text(object, "resourceVersion")).map_err(Failure::untyped)?;
    meta::remove(object, "resourceVersion");
    Ok(())
}

/// Refuses an object that is not made of the current one.
fn check_version(place: &Place, object: &mut Value, entry: &Entry) -> Result<(), Failure> {
    let resource = &place.resource;
    let sent = meta::version_number(meta::text(object, "resourceVersion")).map_err(Failure::untyped)?;
    match sent {
        0 if resource.allows_unconditional_update() => {}
        0 => {
            let at = Path::root().child("metadata").child("resourceVersion");
            let error = FieldError::invalid(&at, 0, "must be specified for an update");
            let subject = Subject { group: &resource.group, name: &resource.plural };
            return Err(Failure::invalid(subject, &place.name, &[error]));
        }
        sent if sent == entry.modified => {}
        _ => return Err(Failure::modified(resource.subject(), &place.name)),
    }
    meta::set(object, "resourceVersion", version(entry));
    Ok(())
}
