//! The last step of a write: the commit, on the condition that nothing it depends on has changed.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::MutexGuard;
use tokio::time::timeout;
use watchkeeper_schema::{Weight, managed};
use watchkeeper_storage::{Commit, Entry, Error, Revision};

use super::admission::webhooks;
use super::operation::{Operation, create};
use super::request::{Current, Intent, Moment, Outcome, Planned};
use super::{WriteRequest, Writer, Written, ownership};
use crate::access::{self, Authorization};
use crate::budget::LARGE;
use crate::conversion::Encoded;
use crate::crd::{self, Names};
use crate::object::meta;
use crate::object::record::Record;
use crate::request::MAX_REQUEST_BYTES;
use crate::request::delete_options::DeleteOptions;
use crate::resource::{ObjectRef, Resource};
use crate::status_error::StatusError;

/// How long a CRD takes to be in force, at most: who writes one waits no longer, and clients give up after 30 s.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(10);

impl Writer {
    /// Commits what was planned, unless it is a dry run. It is in force when this returns, but for a CRD while CRDs are not followed.
    pub(super) async fn commit(
        &self,
        request: &WriteRequest<'_>,
        current: Current,
        planned: Planned,
        attempt: usize,
    ) -> Result<Outcome, StatusError> {
        let WriteRequest { target, context, operation, .. } = request;
        let Planned { mut object, mut intent, reservation, warnings, .. } = planned;
        let (resource, key, created) = (&target.resource, target.key(), current.object.is_none());
        if created && let Some(version) = operation.unexpected_version() {
            if !context.dry_run {
                return Err(StatusError::untyped(
                    "resourceVersion should not be set on objects to be created",
                ));
            }
            meta::set(&mut object, "resourceVersion", version.to_string());
        }
        let mut exclusive = self.exclusive(resource).await?;
        if resource.is_crd() && !context.dry_run && !operation.is_deletion() {
            judge_names(resource, &mut object, &self.moment());
        }
        if let Some(old) = current.object.as_ref().filter(|_| !operation.is_deletion()) {
            if managed::same_but_times(&object, old) {
                object = old.clone();
                intent = if self.migrates(request, &current) { Intent::Put } else { Intent::Keep };
            } else if is_finished(resource, &object) {
                intent = Intent::Remove;
            }
        }
        let mut encoded = None;
        if intent == Intent::Put {
            let mut next = self.encode(request, object).await?;
            object = std::mem::take(&mut next.object);
            if current.entry.as_ref().is_some_and(|entry| is_stored(entry, &next.value)) {
                intent = Intent::Keep;
            }
            encoded = Some(next);
        }
        let removed = intent == Intent::Remove && operation.is_deletion();
        let mut written = Written { object, revision: None, created, removed, warnings };
        let charge = self.charge(request, &current, intent, &written.object).await;
        let charged = charge.map_err(|refusal| refusal.with_more_warnings(&written.warnings))?;
        if context.dry_run && created {
            self.check_absent(target, &key).await?;
        }
        if context.dry_run || intent == Intent::Keep {
            return Ok(Outcome::Written(written));
        }
        let commit = match &encoded {
            Some(encoded) => {
                let (commit, value) = (conditions(&key, &current), encoded.value.clone());
                match self.lifetime(resource) {
                    Some(lifetime) => commit.put_for(key.as_str(), value, lifetime),
                    None => commit.put(key.as_str(), value),
                }
            }
            None => conditions(&key, &current).delete(key.as_str()),
        };
        let commit = match &charged {
            Some(charged) => charged.add_to(commit),
            None => commit,
        };
        let next = Some(&written.object).filter(|_| encoded.is_some());
        let revision =
            match self.store(resource, &key, commit, current.object.as_ref(), next, reservation).await {
                Ok(committed) => committed.revision,
                Err(Error::Conflict { key: other, revision, current }) if other != key => {
                    let is_quota =
                        charged.is_some() && self.quota_changed(&other, current.as_deref(), revision);
                    return Ok(Outcome::Superseded((!is_quota).then_some(revision)));
                }
                Err(Error::Conflict { current, .. }) => {
                    if let Operation::Create(incoming) = operation {
                        create::exists(incoming, target, current.as_deref(), attempt)?;
                    }
                    return Ok(Outcome::Superseded(None));
                }
                Err(error) => return Err(error.into()),
            };
        if let Some(encoded) = &encoded {
            let since = current.entry.as_ref().map_or(revision, |entry| entry.created);
            self.converter.keep(resource, &key, [since, revision], encoded);
        }
        if let Some(last_written) = &mut exclusive {
            **last_written = revision;
        }
        drop(exclusive);
        self.charged(charged, revision);
        self.in_force(request, revision).await;
        if resource.frames.watchers() > 0 {
            // Watchers were woken before; whoever writes and watches should hear of a change no later than that it was made.
            tokio::task::yield_now().await;
        }
        if removed && resource.is_core("services") {
            self.delete_endpoints(target).await;
        }
        // Of an object that went with its last finalizer, the answer is what was last said about it.
        if encoded.is_some() || removed {
            meta::set(&mut written.object, "resourceVersion", revision.to_string());
        }
        written.revision = Some(revision);
        Ok(Outcome::Written(written))
    }

    /// Whether a write that changes nothing may change what is stored: it brings the object to the version that is stored now.
    fn migrates(&self, request: &WriteRequest<'_>, current: &Current) -> bool {
        let is_outdated = |entry| request.target.resource.is_outdated(entry);
        request.context.author.client().is_some() && current.entry.as_deref().is_some_and(is_outdated)
    }

    /// The stored form of an object. The server's own writes leave it in the version in which it is stored.
    pub(super) async fn encode(
        &self,
        request: &WriteRequest<'_>,
        object: Value,
    ) -> Result<Encoded, StatusError> {
        let resource = &request.target.resource;
        let encoded = match request.context.author.client() {
            None if resource.converts_by_webhook() => Encoded::unconverted(resource, object),
            _ => self.converter.encode(resource, object).await?,
        };
        check_size(&encoded.value, &encoded.object)?;
        Ok(encoded)
    }

    /// The right to write CRDs, no two of which may have the same names; `None` for other resources. It is given when the CRD that was
    /// written last is in force, and refused if that takes too long.
    async fn exclusive(&self, resource: &Resource) -> Result<Option<MutexGuard<'_, Revision>>, StatusError> {
        if !resource.is_crd() {
            return Ok(None);
        }
        loop {
            let last_written = self.crd_names.lock().await;
            if self.registrar.has_reached(*last_written) {
                return Ok(Some(last_written));
            }
            let revision = *last_written;
            drop(last_written);
            self.definitions_in_force(revision).await?;
        }
    }

    /// Waits until the definitions of a revision are in force, but not for long if they are not followed at present.
    pub(super) async fn definitions_in_force(&self, revision: Revision) -> Result<(), StatusError> {
        let mut stopping = self.stopping.clone();
        let reached = tokio::select! {
            reached = timeout(IN_FORCE_WITHIN, self.registrar.reach(revision)) => reached.is_ok(),
            () = stopping.wait() => false,
        };
        match reached {
            true => Ok(()),
            false => Err(StatusError::unavailable("CRDs are not followed at present; retry")),
        }
    }

    /// Refuses the dry run of a create if the object exists.
    async fn check_absent(&self, target: &ObjectRef, key: &str) -> Result<(), StatusError> {
        match self.storage.get(key, None).await?.entry {
            Some(entry) => Err(create::already_exists(target, Some(&entry))),
            None => Ok(()),
        }
    }

    /// Waits until a CRD, a role, a binding, a webhook or what plug-ins look up is in force: its writer may rely on it at once.
    async fn in_force(&self, request: &WriteRequest<'_>, revision: Revision) {
        let resource = &request.target.resource;
        if let Some(lister) = self.listers.of(resource)
            && request.context.author.client().is_some()
        {
            self.unless_stopping(lister.reach(revision)).await;
        }
        if resource.is_core("resourcequotas") {
            self.unless_stopping(self.quota_in_force(request)).await;
        }
        if resource.is_crd()
            && let Err(failure) = self.definitions_in_force(revision).await
        {
            tracing::warn!(definition = %request.target.name, failure = %failure.message, "CRD is stored, but not in force yet");
        }
        if resource.group == webhooks::GROUP {
            self.unless_stopping(self.webhooks().reach(revision)).await;
        }
        if resource.group == access::GROUP && self.access.authorization() == Authorization::Rbac {
            self.unless_stopping(self.access.reach(revision)).await;
        }
    }

    /// Waits for what is followed, unless nothing is followed any more.
    async fn unless_stopping(&self, reached: impl Future<Output = ()>) {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            () = reached => {}
            () = stopping.wait() => {}
        }
    }

    /// Deletes the Endpoints of a Service that was deleted.
    async fn delete_endpoints(&self, service: &ObjectRef) {
        let Some(resource) = self.registrar.current().find("", "v1", "endpoints") else { return };
        let target = ObjectRef { resource, ..service.clone() };
        // The Service is gone; its deletion has succeeded in any case.
        if let Err(failure) = Box::pin(self.delete(&target, &DeleteOptions::default())).await {
            tracing::warn!(service = %target.name, failure = %failure.message, "Endpoints could not be deleted");
        }
    }
}

/// The conditions of a commit: the object and the guards are as they were read.
fn conditions(key: &str, current: &Current) -> Commit {
    let commit = match &current.entry {
        Some(entry) => Commit::new().unchanged(key, entry.modified),
        None => Commit::new().absent(key),
    };
    current.guards.iter().fold(commit, |commit, guard| commit.unchanged(guard.key.as_str(), guard.modified))
}

/// Refuses an object that is too large for any request to bring it back.
fn check_size(bytes: &Bytes, object: &Value) -> Result<(), StatusError> {
    if bytes.len() > 2 * MAX_REQUEST_BYTES {
        return Err(StatusError::too_large(&format!("limit is {MAX_REQUEST_BYTES}")));
    }
    // Patches can make more of an object than any body would be.
    if bytes.len() >= LARGE {
        Weight::default().value(object).map_err(|error| StatusError::too_large(&error.to_string()))?;
    }
    Ok(())
}

/// Whether this is what an entry has.
fn is_stored(entry: &Entry, value: &Bytes) -> bool {
    let (stored, next) = (Record::read(entry).ok(), Record::parse(value, entry.modified));
    stored.zip(next).is_some_and(|(stored, next)| stored.says_the_same_as(&next))
}

/// Whether an object is marked for deletion and nothing holds it any more.
fn is_finished(resource: &Resource, object: &Value) -> bool {
    let grace = meta::get(object, "deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
    meta::is_deleting(object)
        && meta::finalizers(object).is_empty()
        && grace == 0
        && !resource.is_held(object)
}

/// Sets the conditions of a CRD: which of its names it gets, as the server's own fields.
fn judge_names(resource: &Resource, object: &mut Value, moment: &Moment) {
    let group = object["spec"]["group"].as_str().unwrap_or_default().to_owned();
    let name = meta::name(object).to_owned();
    let builtin = watchkeeper_kinds::all().iter().filter(|kind| kind.group == group).map(|kind| Names {
        plural: kind.plural.into(),
        singular: kind.singular.into(),
        kind: kind.kind.into(),
        list_kind: kind.list_kind(),
        short_names: kind.short_names.iter().map(|name| (*name).to_owned()).collect(),
        categories: Vec::new(),
    });
    let custom = moment.registry.definitions.values().map(|installed| &installed.definition);
    let custom =
        custom.filter(|other| other.group == group && other.name != name).map(|other| other.names.clone());
    let others: Vec<Names> = builtin.chain(custom).collect();
    let before = object.clone();
    if crd::conditions(object, &others, &moment.stamp) {
        ownership::record_conditions(resource, object, &before, moment);
    }
}
