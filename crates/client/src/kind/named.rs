use crate::kind::Kind;

/// An empty object with the name and the namespace of another, to be filled in.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use watchkeeper_client::named;
/// # let mut secret = Secret::default();
/// # secret.metadata.name = Some("web".into());
/// let map = ConfigMap { data: Some([("a".into(), "b".into())].into()), ..named(&secret) };
/// assert_eq!(map.metadata.name.as_deref(), Some("web"));
/// ```
pub fn named<C: Kind + Default>(object: &impl Kind) -> C {
    with_name(object, object.meta().name.clone())
}

/// An empty object with the namespace of another and its name with a suffix: `web` and `cache` make `web-cache`. For owners with several
/// children of a kind.
pub fn named_after<C: Kind + Default>(object: &impl Kind, suffix: &str) -> C {
    with_name(object, object.meta().name.as_ref().map(|name| format!("{name}-{suffix}")))
}

fn with_name<C: Kind + Default>(object: &impl Kind, name: Option<String>) -> C {
    let mut named = C::default();
    let meta = named.meta_mut();
    meta.name = name;
    meta.namespace = object.meta().namespace.clone();
    named
}
