//! managedFields: which manager owns which fields.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use watchkeeper_schema::managed::{self, Converted, FieldPath, FieldSet, ManagedFields, Request, Versions};
use watchkeeper_schema::{Error, Shape};

use super::operation::Operation;
use super::request::{Current, Draft, Moment};
use super::{Subresource, WriteRequest};
use crate::conversion::Conversions;
use crate::object::meta;
use crate::resource::{Nature, Resource};

/// What is written through the object itself leaves the status alone.
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::from_iter([FieldPath::of(["status"])]));

/// What is written through the status leaves everything else alone.
static ALL_BUT_STATUS: LazyLock<FieldSet> = LazyLock::new(|| {
    let fields = ["labels", "annotations", "finalizers", "ownerReferences"];
    let metadata = fields.map(|field| FieldPath::of(["metadata", field]));
    metadata.into_iter().chain([FieldPath::of(["spec"])]).collect()
});

static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);

/// The versions of a resource that are served, for fields that were written in another one.
struct Served<'a> {
    versions: Vec<Arc<Resource>>,
    conversions: &'a Conversions,
}

impl<'a> Served<'a> {
    fn of(moment: &'a Moment, resource: &Resource) -> Self {
        Self { versions: moment.registry.versions_of(&resource.prefix), conversions: &moment.conversions }
    }

    fn find(&self, api_version: &str) -> Option<&Resource> {
        self.versions.iter().find(|resource| resource.api_version == api_version).map(|resource| &**resource)
    }
}

impl Versions for Served<'_> {
    fn shape(&self, api_version: &str) -> Option<&Shape> {
        self.find(api_version).map(Resource::shape)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Converted, Error> {
        let from = object.get("apiVersion").and_then(Value::as_str).and_then(|version| self.find(version));
        let Some(to) = self.find(api_version) else { return Ok(Converted::NoSuchVersion) };
        if to.converts_by_webhook() {
            let converted = self.conversions.get(object, api_version).map_err(Error::Apply)?;
            return Ok(Converted::Object(converted));
        }
        let mut object = object.clone();
        if let (Some(Nature::Builtin(from)), Nature::Builtin(to)) =
            (from.map(|from| &from.nature), &to.nature)
        {
            object = to.from_stored(from.to_stored(object));
        }
        object["apiVersion"] = api_version.into();
        Ok(Converted::Object(object))
    }
}

/// The fields that a write through a subresource does not own.
fn reset(resource: &Resource, subresource: Subresource) -> Cow<'static, FieldSet> {
    if let Some(fields) = resource.builtin_kind().and_then(|kind| kind.reset_fields(subresource)) {
        return Cow::Owned(fields.iter().map(|path| FieldPath::of(path.iter().copied())).collect());
    }
    let usual: &'static FieldSet = match subresource {
        Subresource::Status => &ALL_BUT_STATUS,
        Subresource::Main if resource.has_subresource("status") => &STATUS,
        _ => &NOTHING,
    };
    Cow::Borrowed(usual)
}

/// An object of a resource with nothing in it but what every object of it has.
fn empty(resource: &Resource) -> Value {
    let mut object = json!({"apiVersion": resource.api_version, "kind": resource.kind});
    if resource.builtin_kind().is_some() {
        // Nothing in it can be of the wrong type.
        let _ = resource.coerce(&mut object);
    }
    object
}

/// Records the author of a draft as the owner of the fields that it changes. Applies and Scales record theirs themselves, and a
/// Binding makes nobody an owner.
pub(super) fn record(request: &WriteRequest<'_>, current: &Current, moment: &Moment, draft: &mut Draft) {
    let WriteRequest { target, subresource, context, operation } = request;
    let resource = &target.resource;
    match (operation, &current.object) {
        (Operation::Create(_) | Operation::Replace(_), None) => {
            record_created(resource, &mut draft.object, &context.manager, moment);
        }
        (Operation::Replace(_) | Operation::Patch(_) | Operation::Change(_), Some(old)) => {
            // Who changes nothing comes to own nothing. To find that out in other versions, webhooks would be asked.
            if resource.converts_by_webhook() && draft.object == *old {
                return;
            }
            record_change(resource, *subresource, old, &mut draft.object, &context.manager, moment);
        }
        _ => {}
    }
}

/// Records the owner of a new object.
pub(super) fn record_created(resource: &Resource, object: &mut Value, manager: &str, moment: &Moment) {
    record_change(resource, Subresource::Main, &empty(resource), object, manager, moment);
}

/// Records the server as the owner of the status of a CRD, as kube-apiserver does.
pub(super) fn record_conditions(resource: &Resource, object: &mut Value, before: &Value, moment: &Moment) {
    let manager = crate::api_services::MANAGER;
    record_change(resource, Subresource::Status, before, object, manager, moment);
}

fn record_change(
    resource: &Resource,
    subresource: Subresource,
    live: &Value,
    object: &mut Value,
    manager: &str,
    moment: &Moment,
) {
    let record = |request: &Request<'_>| managed::update_or_clear(request, live, object.take());
    *object = as_manager(resource, subresource, manager, moment, record);
}

/// Undoes what webhooks have made of the owners of fields if that makes no sense, and warns about it. What makes sense stays, as in
/// kube-apiserver.
pub(super) fn restore(draft: &mut Draft) {
    let before = draft.owners.take();
    let Err(why) = ManagedFields::read(&draft.object) else {
        if meta::get(&draft.object, "managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            meta::remove(&mut draft.object, "managedFields");
        }
        return;
    };
    match before {
        Some(before) => meta::set(&mut draft.object, "managedFields", before),
        None => meta::remove(&mut draft.object, "managedFields"),
    }
    draft.warnings.push(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission \
         controller; please fix your requests: {why}"
    ));
}

/// Changes owners of fields in the name of a manager.
pub(super) fn as_manager<T>(
    resource: &Resource,
    subresource: Subresource,
    manager: &str,
    moment: &Moment,
    act: impl FnOnce(&Request<'_>) -> T,
) -> T {
    act(&Request {
        versions: &Served::of(moment, resource),
        api_version: &resource.api_version,
        kind: &resource.kind,
        subresource: super::subresource_name(subresource),
        manager,
        now: &moment.stamp,
        reset: &reset(resource, subresource),
    })
}
