use super::read::Reader;
use super::{Field, Identity, Key, List, Map, Patch, Scalar, Type, TypeId};

const TEXTS: [&str; 8] =
    ["generateName", "name", "namespace", "resourceVersion", "selfLink", "uid", "apiVersion", "kind"];

/// The type of the metadata of an object, made when it is first asked for: labels and annotations merge, finalizers are
/// a set, owners are told apart by their uid.
pub(super) fn metadata(reader: &mut Reader<'_>) -> TypeId {
    if let Some(known) = reader.metadata {
        return known;
    }
    let text = reader.add(scalar(Scalar::String));
    let time = reader.add(scalar(Scalar::Untyped));
    let number = reader.add(scalar(Scalar::Numeric));
    let flag = reader.add(scalar(Scalar::Boolean));
    let texts = reader.add(map(Vec::new(), Some(text), false));
    let finalizers = reader.add(list(text, Identity::Value));
    let owner = TEXTS.iter().filter(|name| ["apiVersion", "kind", "name", "uid"].contains(name));
    let owner: Vec<Field> = owner
        .map(|name| field(name, text))
        .chain([field("blockOwnerDeletion", flag), field("controller", flag)])
        .collect();
    let owner = reader.add(map(owner, None, true));
    let uid = Key { name: "uid".into(), default: None };
    let owners = reader.add(list(owner, Identity::Keys(vec![uid])));
    let entry =
        ["apiVersion", "fieldsType", "manager", "operation", "subresource"].map(|name| field(name, text));
    let entry: Vec<Field> =
        entry.into_iter().chain([field("time", time), field("fieldsV1", super::DEDUCED)]).collect();
    let entry = reader.add(map(entry, None, false));
    let managed = reader.add(list(entry, Identity::Whole));

    let mut fields: Vec<Field> = TEXTS[..6].iter().map(|name| field(name, text)).collect();
    fields.extend([
        field("annotations", texts),
        field("creationTimestamp", time),
        field("deletionGracePeriodSeconds", number),
        field("deletionTimestamp", time),
        merged("finalizers", finalizers, ""),
        field("generation", number),
        field("labels", texts),
        field("managedFields", managed),
        merged("ownerReferences", owners, "uid"),
    ]);
    let metadata = reader.add(map(fields, None, false));
    reader.metadata = Some(metadata);
    metadata
}

pub(super) fn scalar(scalar: Scalar) -> Type {
    Type { scalar: Some(scalar), ..Type::default() }
}

fn list(items: TypeId, identity: Identity) -> Type {
    Type { list: Some(List { items, identity }), ..Type::default() }
}

fn map(mut fields: Vec<Field>, others: Option<TypeId>, atomic: bool) -> Type {
    fields.sort_by(|left, right| left.name.cmp(&right.name));
    Type { map: Some(Map { fields, others, atomic, open: false }), ..Type::default() }
}

fn field(name: &str, kind: TypeId) -> Field {
    Field { name: name.into(), kind, patch: Patch::default() }
}

fn merged(name: &str, kind: TypeId, merge_key: &str) -> Field {
    let patch = Patch { strategy: "merge".into(), merge_key: merge_key.into() };
    Field { name: name.into(), kind, patch }
}
