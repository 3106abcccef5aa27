//! The OpenAPI documents: what clients read to explain, to validate and to merge.
//!
//! [`v3`] is the document of one group and version, [`v2`] the Swagger document of the whole server, [`v2_protobuf`] the
//! same in the encoding that kubectl asks for first. Each call makes its document anew, piece by piece, and keeps nothing;
//! the caller caches what is worth it.
//!
//! The documents hold the definitions of all types that are reachable from the kinds, under their real names, and the paths
//! of all resources with their operations and parameters. kubectl looks there for a PATCH operation of a kind that takes
//! `fieldValidation`, to know whether the server can check fields itself. The old paths under `/watch` are left out.

mod custom;
mod operations;
mod protobuf;
mod published;
mod resource;
mod swagger;
mod three;

use serde_json::Value;

/// A kind that a CustomResourceDefinition defines, in one version.
#[derive(Clone, Debug)]
pub struct CustomKind<'a> {
    /// The API group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind, `Widget`.
    pub kind: &'a str,
    /// The kind of its lists, `WidgetList`.
    pub list_kind: &'a str,
    /// The resource, `widgets`.
    pub plural: &'a str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The value of `openAPIV3Schema`.
    pub schema: Option<&'a Value>,
    /// Whether there is a status subresource.
    pub status: bool,
    /// Whether there is a scale subresource.
    pub scale: bool,
}

/// The OpenAPI 3.0 document of a group and version, as JSON; `release` is the version of the server, `v1.36.0`.
///
/// It holds the built-in kinds of that group and version and those of `custom` that are in it.
pub fn v3(group: &str, version: &str, release: &str, custom: &[CustomKind<'_>]) -> Vec<u8> {
    three::document(group, version, release, custom)
}

/// The Swagger 2.0 document of all built-in kinds and the custom ones, as JSON.
///
/// Schemas of custom kinds are reduced to what Swagger can say.
pub fn v2(release: &str, custom: &[CustomKind<'_>]) -> Vec<u8> {
    v2_with(release, custom, &[])
}

/// The document of [`v2`] with the paths and definitions of other documents. Existing paths and definitions are not replaced.
pub fn v2_with(release: &str, custom: &[CustomKind<'_>], others: &[&serde_json::Value]) -> Vec<u8> {
    swagger::json(release, custom, others)
}

/// The document of [`v2`] in the protobuf encoding `application/com.github.proto-openapi.spec.v2@v1.0+protobuf`.
pub fn v2_protobuf(release: &str, custom: &[CustomKind<'_>]) -> Vec<u8> {
    v2_protobuf_with(release, custom, &[])
}

/// The document of [`v2_with`] in the encoding of [`v2_protobuf`].
pub fn v2_protobuf_with(release: &str, custom: &[CustomKind<'_>], others: &[&serde_json::Value]) -> Vec<u8> {
    swagger::protobuf(release, custom, others)
}
