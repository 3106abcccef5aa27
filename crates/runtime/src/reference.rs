use watchkeeper_client::{Kind, kind_of};
use watchkeeper_events::ObjectRef;

/// What events say about which object they are about.
pub(crate) fn reference<K: Kind>(object: &K) -> ObjectRef {
    let meta = object.meta();
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let (api_version, kind) = kind_of(object);
    ObjectRef::new(api_version, kind, text(&meta.name))
        .in_namespace(text(&meta.namespace))
        .with_uid(text(&meta.uid))
}
