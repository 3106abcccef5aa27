//! The attribute macros of Watchkeeper. Use them through the `watchkeeper` crate, which has their documentation: what they
//! write refers to it.

mod arguments;
mod derives;
mod expand;
mod options;

use proc_macro::TokenStream;

/// Makes a custom resource of the struct that is its `spec`.
///
/// ```
/// #[watchkeeper::kind(group = "demo.dev", version = "v1", kind = "Page", namespaced, status = "PageStatus")]
/// pub struct PageSpec {
///     pub text: String,
/// }
///
/// #[watchkeeper::schema]
/// pub struct PageStatus {
///     pub visits: u32,
/// }
///
/// let page = Page::new("welcome", PageSpec { text: "Hello".into() });
/// assert_eq!(page.metadata.name.as_deref(), Some("welcome"));
/// ```
///
/// makes the type `Page` with `metadata`, `spec` and `status`, and its CustomResourceDefinition.
///
/// # Arguments
///
/// | argument | meaning |
/// |---|---|
/// | `group = "demo.dev"`, `version = "v1"`, `kind = "Page"` | required |
/// | `namespaced` | objects live in namespaces; without it, in none |
/// | `no_spec` | objects have the fields of the struct themselves, and no `spec`; in Rust they stay in the field `spec` |
/// | `status = "PageStatus"` | the type of `status`, which becomes a subresource |
/// | `plural = "pages"`, `singular = "page"` | default: derived from the kind |
/// | `shortname = "pg"`, `category = "all"` | names for `kubectl get`; may be repeated |
/// | `printcolumn("Text", ".spec.text")` | a column of `kubectl get`: name, path, and as a third the type, by default `"string"` |
/// | `scale(spec_replicas_path = "..", status_replicas_path = "..")` | the scale subresource |
/// | `derive = "PartialEq"` | another derive for the generated type |
/// | `crate = "path"` | where the `watchkeeper` crate is, if it was renamed |
///
/// Everything else is handed to the derive of the `kube` crate, which understands more.
///
/// # What is derived
///
/// `Serialize`, `Deserialize`, `JsonSchema`, `Clone` and `Debug`, except for those that a `#[derive(..)]` *below* this attribute
/// names. Fields are named in camelCase, as everywhere in Kubernetes, unless there is a `#[serde(rename_all = "..")]`.
/// A field of type `Option` that is `None` is left out instead of written as `null`, unless its `#[serde(..)]` says when to skip it.
/// Attributes of serde and schemars on fields work as usual.
#[proc_macro_attribute]
pub fn kind(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::kind(arguments.into(), item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a type that can stand in the schema of a [`kind`](macro@kind): a status, or a part of a spec.
///
/// Derives the same traits as [`kind`](macro@kind) does, and names the fields of structs in camelCase. The variants of enums keep
/// their names. `crate = "path"` says where the `watchkeeper` crate is, if it was renamed.
#[proc_macro_attribute]
pub fn schema(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::schema(arguments.into(), item.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}
