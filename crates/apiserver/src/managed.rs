//! Who manages which fields.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use watchkeeper_schema::managed::{self, Converted, FieldPath, FieldSet, Request, Versions};
use watchkeeper_schema::{Error, Shape};

use crate::registry::Registry;
use crate::resource::{Nature, Resource};
use crate::server::Server;
use crate::write::{Manner, Part, Place};

/// What is written through the object itself leaves the status alone.
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::from_iter([FieldPath::of(["status"])]));

/// What is written through the status leaves everything else alone.
static ALL_BUT_STATUS: LazyLock<FieldSet> = LazyLock::new(|| {
    let fields = ["labels", "annotations", "finalizers", "ownerReferences"];
    let metadata = fields.map(|field| FieldPath::of(["metadata", field]));
    metadata.into_iter().chain([FieldPath::of(["spec"])]).collect()
});

/// What is written through a request for a certificate, and through its parts, leaves alone.
static REQUEST: LazyLock<FieldSet> =
    LazyLock::new(|| ["spec", "status"].map(|field| FieldPath::of([field])).into_iter().collect());
static REQUEST_STATUS: LazyLock<FieldSet> = LazyLock::new(|| {
    [FieldPath::of(["spec"]), FieldPath::of(["status", "conditions"])].into_iter().collect()
});
static REQUEST_APPROVAL: LazyLock<FieldSet> = LazyLock::new(|| {
    [FieldPath::of(["spec"]), FieldPath::of(["status", "certificate"])].into_iter().collect()
});

/// What is written through the status of some kinds leaves everything else alone, all of the metadata too.
static ONLY_STATUS: LazyLock<FieldSet> =
    LazyLock::new(|| ["metadata", "spec"].map(|field| FieldPath::of([field])).into_iter().collect());

static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);

/// The versions of a resource that are served, for fields that were written in another one.
struct Served(Vec<Arc<Resource>>);

impl Served {
    fn of(registry: &Registry, resource: &Resource) -> Self {
        Self(registry.versions_of(&resource.prefix))
    }

    fn find(&self, api_version: &str) -> Option<&Resource> {
        self.0.iter().find(|resource| resource.api_version == api_version).map(|resource| &**resource)
    }
}

impl Versions for Served {
    fn shape(&self, api_version: &str) -> Option<&Shape> {
        self.find(api_version).map(Resource::shape)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Converted, Error> {
        let from = object.get("apiVersion").and_then(Value::as_str).and_then(|version| self.find(version));
        let Some(to) = self.find(api_version) else { return Ok(Converted::NoSuchVersion) };
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

/// What a part of a resource does not write.
fn reset(resource: &Resource, part: Part) -> &'static FieldSet {
    match (part, resource.builtin_kind().map_or("", |kind| kind.kind)) {
        (Part::Main, "CertificateSigningRequest") => &REQUEST,
        (Part::Status, "CertificateSigningRequest") => &REQUEST_STATUS,
        (Part::Approval, _) => &REQUEST_APPROVAL,
        (
            Part::Status,
            "APIService" | "ResourceClaim" | "ServiceCIDR" | "ValidatingAdmissionPolicy" | "VolumeAttachment",
        ) => &ONLY_STATUS,
        (Part::Status, _) => &ALL_BUT_STATUS,
        (Part::Main, _) if resource.has_subresource("status") => &STATUS,
        _ => &NOTHING,
    }
}

/// The name of a part, as owners are recorded with it.
fn subresource(part: Part) -> &'static str {
    match part {
        Part::Status => "status",
        Part::Finalize => "finalize",
        Part::EphemeralContainers => "ephemeralcontainers",
        Part::Approval => "approval",
        Part::Resize => "resize",
        _ => "",
    }
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

impl Server {
    /// Records who made an object.
    pub(crate) fn manage_created(&self, resource: &Resource, object: &mut Value, manner: &Manner) {
        let nothing = empty(resource);
        self.manage(resource, Part::Main, &nothing, object, manner);
    }

    /// Records who changed an object.
    pub(crate) fn manage_updated(
        &self,
        place: &Place,
        part: Part,
        object: &mut Value,
        old: &Value,
        manner: &Manner,
    ) {
        self.manage(&place.resource, part, old, object, manner);
    }

    /// Records that this server has said something in the status of a definition, as kube-apiserver does.
    pub(crate) fn manage_judged(&self, resource: &Resource, object: &mut Value, before: &Value) {
        let manner = Manner { manager: crate::api_services::MANAGER.into(), ..Manner::default() };
        self.manage(resource, Part::Status, before, object, &manner);
    }

    fn manage(&self, resource: &Resource, part: Part, live: &Value, object: &mut Value, manner: &Manner) {
        if !manner.is_apply {
            let record = |request: &Request<'_>| managed::update_or_clear(request, live, object.take());
            *object = self.as_manager(resource, part, manner, record);
        }
    }

    /// Does something about the owners of fields in the name of who writes.
    pub(crate) fn as_manager<T>(
        &self,
        resource: &Resource,
        part: Part,
        manner: &Manner,
        act: impl FnOnce(&Request<'_>) -> T,
    ) -> T {
        let registry = self.registry();
        act(&Request {
            versions: &Served::of(&registry, resource),
            api_version: &resource.api_version,
            kind: &resource.kind,
            subresource: subresource(part),
            manager: &manner.manager,
            now: &self.options.clock.stamp(),
            reset: reset(resource, part),
        })
    }
}
