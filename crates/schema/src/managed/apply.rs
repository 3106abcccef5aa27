use super::conflict::Conflicts;
use super::element::same;
use super::entries::{ManagedFields, Operation};
use super::last_applied;
use super::ownership::Refusal;
use super::update::{describe, entry, kind_of, record, strip, without_owners};
use super::{FieldSet, Request};
use crate::Error;
use serde_json::{Value, json};

/// Who owned what before anybody applied.
const BEFORE_APPLY: &str = "before-first-apply";

/// The result of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object to store, with its owners.
    pub object: Value,
    /// Whether it differs from the live one in anything but its owners. Owners can change without that; whether there is
    /// anything to store says [`same_but_times`](super::same_but_times).
    pub changed: bool,
}

/// The error of an apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields and have given them other values.
    #[error(transparent)]
    Conflicts(#[from] Conflicts),
    /// The apply is impossible.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Server-side apply: `applied` is all that the manager has to say about the object.
///
/// Its fields are merged into `live` and belong to the manager from now on. What the manager applied before and does not
/// apply now is removed if nobody else owns it. A field that somebody else owns is shared if it is applied with the value it
/// has; with another value it is a conflict, or, if forced, it changes hands.
///
/// `live` is what is stored, `None` if there is nothing; the result is then what is to be created. Kinds whose empty object
/// is more than `apiVersion` and `kind` give that instead of `None`. The result is neither defaulted nor validated.
///
/// The manager `kubectl` takes over from client-side apply: it has no conflict in fields that the annotation
/// `kubectl.kubernetes.io/last-applied-configuration` names with the value they have, and keeps that annotation up to date.
pub fn apply(
    request: &Request<'_>,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
) -> Result<Applied, ApplyError> {
    check(request, applied)?;
    let empty = json!({"apiVersion": request.api_version, "kind": request.kind});
    let live = live.unwrap_or(&empty);
    let stored = live;
    let live = without_owners(live);
    let owners = || {
        let mut managed = ManagedFields::read(stored)
            .map_err(|error| Error::Apply(format!("failed to decode managed fields: {error}")))?;
        if managed.is_empty() {
            record(request, &empty, &live, &mut managed, BEFORE_APPLY).map_err(|error| {
                Error::Apply(format!("failed to create manager for existing fields: {error}"))
            })?;
        }
        Ok::<_, Error>(managed)
    };
    let mut managed = owners()?;
    if applied.pointer("/metadata/managedFields").is_some_and(Value::is_array) {
        return Err(Error::NotApplicable("metadata.managedFields must be nil".into()).into());
    }
    let typed = request.typed()?;
    typed.validate(applied, false).map_err(|error| {
        Error::Apply(format!("failed to create typed patch object ({}): {error}", describe(applied)))
    })?;
    typed.validate(&live, true).map_err(|error| {
        Error::Apply(format!("failed to create typed live object ({}): {error}", describe(&live)))
    })?;
    request.reconcile(&live, &mut managed)?;
    // Worked out anew where they are needed again: that is when there are conflicts.
    let again = || {
        let mut managed = owners()?;
        request.reconcile(&live, &mut managed)?;
        Ok(managed)
    };
    let (mut object, mut managed, changed) = merge(request, &live, applied, managed, again, force)?;
    if request.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, applied);
    }
    managed.retain(|_, entry| !entry.fields.is_empty());
    managed.fit()?;
    managed.write(&mut object);
    Ok(Applied { object, changed })
}

fn check(request: &Request<'_>, applied: &Value) -> Result<(), Error> {
    let text = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") != request.api_version || text("kind") != request.kind {
        return Err(Error::NotApplicable(format!("invalid object type: {}", kind_of(applied))));
    }
    Ok(())
}

type Merged = (Value, ManagedFields, bool);

fn merge(
    request: &Request<'_>,
    live: &Value,
    applied: &Value,
    managed: ManagedFields,
    again: impl FnOnce() -> Result<ManagedFields, Error>,
    force: bool,
) -> Result<Merged, ApplyError> {
    let typed = request.typed()?;
    let fields = typed.fields(applied).without(request.reset);
    let refusal = match attempt(request, live, applied, managed, &fields, force) {
        Ok(merged) => return Ok(merged),
        Err(refusal) => refusal,
    };
    let managed = again()?;
    if request.manager != last_applied::MANAGER {
        return Err(refusal.explain(&managed)?.into());
    }
    let Refusal::Conflicts(mut conflicts) = refusal else {
        return Err(refusal.explain(&managed)?.into());
    };
    if let Some(allowed) = last_applied::owned(request, live) {
        for (_, fields) in &mut conflicts {
            *fields = std::mem::take(fields).difference(&allowed);
        }
        if conflicts.iter().all(|(_, fields)| fields.is_empty()) {
            return attempt(request, live, applied, managed.clone(), &fields, true)
                .or_else(|refusal| Err(refusal.explain(&managed)?.into()));
        }
    }
    Err(Refusal::Conflicts(conflicts).explain(&managed)?.into())
}

fn attempt(
    request: &Request<'_>,
    live: &Value,
    applied: &Value,
    mut managed: ManagedFields,
    fields: &FieldSet,
    force: bool,
) -> Result<Merged, Refusal> {
    let typed = request.typed()?;
    let mut merged = live.clone();
    typed.merge(&mut merged, applied);
    let mut own = entry(request, request.manager, Operation::Apply);
    let id = own.id();
    let last = managed.remove(&id);
    own.time = last.as_ref().and_then(|last| last.time.clone());
    own.fields = fields.clone();
    managed.insert(id.clone(), own);
    let object = match last {
        Some(last) => request
            .prune(merged, &managed, &last.fields, &last.api_version, fields)
            .map_err(|error| Error::Apply(format!("failed to prune fields: {error}")))?,
        None => merged,
    };
    request.transfer(live, &object, &mut managed, &id, force)?;
    let changed = !same(live, &object);
    if let Some(own) = managed.get_mut(&id) {
        if !strip(own) {
            managed.remove(&id);
        } else if changed {
            own.time = Some(request.now.into());
        }
    }
    Ok((object, managed, changed))
}
