//! The built-in kinds of Kubernetes 1.36, as data: what a client of an API server can see of them.
//!
//! [`all`] is the table of kinds, with their names, scope, verbs and subresources. A [`Kind`] also knows its type, so an
//! object goes through the same steps as in kube-apiserver, each a pure function over [`serde_json::Value`]:
//!
//! 1. [`Kind::coerce`]: what decoding into the Go type and encoding again makes of it, with the unknown fields;
//! 2. [`Kind::default`]: missing fields are filled in;
//! 3. [`Kind::prepare_for_create`] or [`Kind::prepare_for_update`]: fields the writer may not set are reset;
//! 4. [`Kind::validate`]: a list of [`FieldError`](watchkeeper_schema::FieldError)s.
//!
//! [`Kind::printer`] shows objects as `kubectl get` does.
//!
//! [`openapi`] makes the OpenAPI documents of these kinds and of custom ones, and [`protobuf`] the other encoding of
//! their objects.
//!
//! There is no I/O, and nothing is read before it is asked for: the schemas of all types lie in the program as text, and
//! a type is parsed when an object of it first comes by. No input makes this crate panic.

mod address;
mod builtin;
mod coerce;
mod columns;
mod decimal;
mod default;
mod definition;
mod error;
mod kind;
pub mod openapi;
mod pem;
mod pod_spec;
mod prepare;
pub mod protobuf;
mod resolve;
mod select;
mod validate;
mod view;

pub use decimal::Quantity;
pub use error::Error;
pub use kind::{Kind, MetadataChecks, NameRule, ScalePaths, SelectableField, Speaks, SubresourceInfo, Verbs};
pub use prepare::Subresource;

/// Every built-in kind, in the order of discovery: the core group, then the others by name.
pub fn all() -> &'static [Kind] {
    builtin::all()
}

/// The organizations that a CertificateSigningRequest asks to be certified as: groups of the user, to an API server.
pub fn requested_organizations(request: &serde_json::Value) -> Vec<String> {
    let text = request["spec"]["request"].as_str().unwrap_or_default();
    let bytes = watchkeeper_go::base64::decode(text).unwrap_or_default();
    pem::certificate_request(&bytes).map(|request| pem::organizations(&request)).unwrap_or_default()
}

/// Whether a type, by its name in Go such as `v1.ObjectMeta`, has fields.
pub fn is_structure(go_type: &str) -> bool {
    go_type.contains('.')
        && definition::names()
            .any(|name| name.strip_suffix(go_type).is_some_and(|package| package.ends_with('.')))
}

/// The priority levels and the flow schemas that every server begins with, complete but for what the server sets.
pub fn flow_control_objects() -> (Vec<serde_json::Value>, Vec<serde_json::Value>) {
    (builtin::flowcontrol::bootstrap::levels(), builtin::flowcontrol::bootstrap::schemas())
}

/// The kind that is served as `plural` in a version of a group; the core group is `""`.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    all().iter().find(|kind| kind.group == group && kind.version == version && kind.plural == plural)
}

/// The printer of table rows for a kind. All versions of a kind share one table, as they do in kube-apiserver. There are
/// printers for some kinds that are not served, or only as a subresource, such as `Scale`.
pub fn printer(group: &str, kind: &str) -> Option<watchkeeper_table::Printer> {
    let served = all().iter().find(|known| known.group == group && known.kind == kind).map(Kind::printer);
    served.or_else(|| {
        let mut others = builtin::not_served::TABLES.into_iter();
        let (_, _, table) = others.find(|(of, name, _)| (*of, *name) == (group, kind))?;
        Some(watchkeeper_table::Printer::of(table))
    })
}

/// The kind with this name in a version of a group.
pub fn find_kind(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    all().iter().find(|known| known.group == group && known.version == version && known.kind == kind)
}
