//! Changes to an object.

use serde_json::Value;

use crate::values;
use crate::{Dice, Tree, schema};

/// Changes an object here and there. With a schema, some of the changes are fields that the schema knows.
pub(crate) fn mutate(tree: &mut Tree, schema: Option<&Value>, dice: &mut Dice) {
    for _ in 0..dice.few() {
        match schema {
            Some(schema) if dice.chance(35) => schema::graft(tree, schema, dice),
            _ if dice.chance(25) => metadata(tree, dice),
            _ => anywhere(tree, dice),
        }
    }
}

/// One change somewhere.
fn anywhere(tree: &mut Tree, dice: &mut Dice) {
    let count = tree.count();
    let other = tree.at(dice.below(count)).map(|(_, other)| other.clone());
    // Rarely the whole of it: little is learned from that.
    let place = if count > 1 && dice.chance(98) { 1 + dice.below(count - 1) } else { 0 };
    let Some((name, found)) = tree.at(place) else { return };
    let name = name.to_owned();
    match dice.below(22) {
        0..=6 => *found = same_type(&name, found, dice),
        7 | 8 => *found = values::any(&name, dice),
        9 => *found = Tree::Null,
        10..=12 => remove(found, dice),
        13 => duplicate(found, dice),
        14 | 15 => extra(found, dice),
        16 => rename(found, dice),
        17 => nest(found, dice),
        18 => *found = other.unwrap_or(Tree::Null),
        19 => repeat(found, dice),
        20 => *found = Tree::List(vec![found.clone()]),
        _ => *found = Tree::text(found.value().unwrap_or_default().to_string()),
    }
}

/// Another value of the same type.
fn same_type(name: &str, found: &Tree, dice: &mut Dice) -> Tree {
    match found {
        Tree::Bool(flag) => Tree::Bool(!flag),
        Tree::Number(_) => values::edge_number(dice),
        Tree::Text(text) if dice.chance(25) => Tree::text(bent(text, dice)),
        Tree::List(_) => Tree::List(Vec::new()),
        Tree::Map(_) => Tree::Map(Vec::new()),
        _ => values::edge_text(name, dice),
    }
}

/// A text with one character more, fewer or other.
pub(crate) fn bent(text: &str, dice: &mut Dice) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let at = dice.below(characters.len() + 1);
    match dice.below(4) {
        0 if at < characters.len() => drop(characters.remove(at)),
        1 => characters.truncate(at),
        2 if at < characters.len() => characters[at] = characters[at].to_ascii_uppercase(),
        _ => characters.insert(
            at,
            *dice.item(&['a', '0', '-', '.', '/', ' ', '%', '"', '\u{0}', 'é', '\u{202e}', '=', ',', '~']),
        ),
    }
    characters.into_iter().collect()
}

fn remove(found: &mut Tree, dice: &mut Dice) {
    match found {
        Tree::Map(fields) if !fields.is_empty() => drop(fields.remove(dice.below(fields.len()))),
        Tree::List(items) if !items.is_empty() => drop(items.remove(dice.below(items.len()))),
        found => *found = Tree::Null,
    }
}

fn duplicate(found: &mut Tree, dice: &mut Dice) {
    match found {
        Tree::Map(fields) if !fields.is_empty() => {
            let (name, value) = dice.item(fields).clone();
            let value = if dice.chance(50) { value } else { values::any(&name, dice) };
            let at = dice.below(fields.len() + 1);
            fields.insert(at, (name, value));
        }
        Tree::List(items) if !items.is_empty() => {
            let item = dice.item(items).clone();
            items.push(item);
        }
        _ => {}
    }
}

fn extra(found: &mut Tree, dice: &mut Dice) {
    match found {
        Tree::Map(fields) => {
            let name = dice.pick(&[
                "extra", "", "spec", "status", "metadata", "name", "kind", "items", "$patch",
                "$setElementOrder/x", "a.b", "~", "__proto__",
            ]);
            fields.push((name.to_owned(), values::any(name, dice)));
        }
        Tree::List(items) => items.push(values::any("", dice)),
        found => *found = values::any("", dice),
    }
}

fn rename(found: &mut Tree, dice: &mut Dice) {
    if let Tree::Map(fields) = found
        && !fields.is_empty()
    {
        let at = dice.below(fields.len());
        fields[at].0 = match dice.below(3) {
            0 => fields[at].0.to_uppercase(),
            1 => bent(&fields[at].0, dice),
            _ => values::text("", dice),
        };
    }
}

/// Puts a value deep into others. The depth is written, not built: trees are read by recursion.
fn nest(found: &mut Tree, dice: &mut Dice) {
    let depth = *dice.item(&[1, 3, 10, 60, 126, 127, 128, 129, 1000, 9_999, 10_001, 200_000]);
    let (open, close) = dice.item(&[("[", "]"), ("{\"a\":", "}"), ("[{\"properties\":", "}]")]);
    *found =
        Tree::Raw([open.repeat(depth).into_bytes(), found.json(), close.repeat(depth).into_bytes()].concat());
}

fn repeat(found: &mut Tree, dice: &mut Dice) {
    let times = *dice.item(&[2, 10, 100, 1000]);
    match found {
        Tree::List(items) if !items.is_empty() && items.len() < 10 => {
            *items = vec![items.clone(); times].concat();
        }
        Tree::Map(fields) if !fields.is_empty() && fields.len() < 10 => {
            let (name, value) = dice.item(fields).clone();
            fields.extend((0..times.min(200)).map(|at| (format!("{name}{at}"), value.clone())));
        }
        _ => {}
    }
}

/// One change to the metadata, which every kind has.
fn metadata(tree: &mut Tree, dice: &mut Dice) {
    let name = dice.pick(&[
        "name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers",
        "ownerReferences", "managedFields", "selfLink",
    ]);
    let value = match name {
        "generation" | "deletionGracePeriodSeconds" => values::number(dice),
        "creationTimestamp" | "deletionTimestamp" => Tree::text(values::text("time", dice)),
        "labels" | "annotations" => pairs(dice),
        "finalizers" => {
            let known = [
                "a.example.com/x", "foregroundDeletion", "orphan", "kubernetes", "x", "", "a/b/c",
                "metadata.finalizers",
            ];
            Tree::List((0..dice.below(4)).map(|_| Tree::text(dice.pick(&known))).collect())
        }
        "ownerReferences" => Tree::List((0..dice.below(3)).map(|_| owner(dice)).collect()),
        "managedFields" => Tree::List((0..dice.below(3)).map(|_| managed(dice)).collect()),
        "resourceVersion" => Tree::text(
            dice.pick(&["", "0", "1", "{version}", "{version}", "x", "-1", "18446744073709551616", "01"]),
        ),
        "uid" => Tree::text(dice.pick(&["", "{uid}", "{uid}", "x", "00000000-0000-0000-0000-000000000000"])),
        name => values::edge_text(name, dice),
    };
    let value = if dice.chance(6) { values::any(name, dice) } else { value };
    *tree.field("metadata").field(name) = value;
}

fn pairs(dice: &mut Dice) -> Tree {
    let keys = [
        "a", "b", "app", "a.example.com/x", "", "/", "a/b/c", "-a", "kubernetes.io/metadata.name",
        "deprecated.daemonset.template.generation",
    ];
    let count = dice.below(4);
    Tree::Map((0..count).map(|_| (dice.pick(&keys).to_owned(), pair(dice))).collect())
}

fn pair(dice: &mut Dice) -> Tree {
    match dice.below(10) {
        0 => values::edge_text("", dice),
        1 => values::any("", dice),
        _ => Tree::text(dice.pick(&["a", "b", "", "x_y", "1"])),
    }
}

/// A reference to an owner: itself, something that is there, or nothing.
fn owner(dice: &mut Dice) -> Tree {
    let mut owner = Tree::Map(Vec::new());
    *owner.field("apiVersion") =
        Tree::text(dice.pick(&["v1", "apps/v1", "a/b/c", "", "x.example.com/v1", "/"]));
    *owner.field("kind") =
        Tree::text(dice.pick(&["ConfigMap", "Pod", "Deployment", "Namespace", "Event", "", "Nothing"]));
    *owner.field("name") = Tree::text(values::object_name(dice));
    *owner.field("uid") =
        Tree::text(dice.pick(&["{uid}", "{uid}", "x", "", "00000000-0000-0000-0000-000000000000"]));
    if dice.chance(50) {
        *owner.field("controller") = Tree::Bool(dice.chance(70));
    }
    if dice.chance(50) {
        *owner.field("blockOwnerDeletion") = Tree::Bool(dice.chance(70));
    }
    if dice.chance(15) {
        anywhere(&mut owner, dice);
    }
    owner
}

/// An entry of managed fields.
fn managed(dice: &mut Dice) -> Tree {
    let fields = dice.pick(&[
        r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}"#, r#"{"f:data":{"f:k":{}}}"#,
        r#"{"f:spec":{"k:{\"name\":\"a\"}":{".":{}}}}"#, r#"{"k:{":{}}"#, r#"{"v:1":{}}"#, r#"{"i:-1":{}}"#,
        r#"{"i:99999999999999999999":{}}"#, r#"{"x:y":{}}"#, r#"{"":{}}"#, r#"{"f:":{}}"#, "[]", "null",
        r#"{"f:a":1}"#, r#"{"k:{\"a\":1e400}":{}}"#, r#"{"v:{\"a\":[]}":{}}"#,
    ]);
    let mut entry = Tree::Map(Vec::new());
    *entry.field("manager") = Tree::text(dice.pick(&["a", "b", "fuzz", "", "kubectl"]));
    *entry.field("operation") = Tree::text(dice.pick(&["Update", "Apply", "", "Delete"]));
    *entry.field("apiVersion") = Tree::text(dice.pick(&["v1", "apps/v1", "", "v0", "a/b/c"]));
    *entry.field("time") = Tree::text(values::text("time", dice));
    *entry.field("fieldsType") = Tree::text(dice.pick(&["FieldsV1", "FieldsV1", "FieldsV2", ""]));
    *entry.field("fieldsV1") = Tree::Raw(fields.as_bytes().to_vec());
    if dice.chance(15) {
        *entry.field("subresource") = Tree::text(dice.pick(&["status", "scale", "", "x"]));
    }
    if dice.chance(15) {
        anywhere(&mut entry, dice);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_changes() {
        let object = serde_json::json!({"metadata": {"name": "a"}, "spec": {"a": [1, 2, {"b": "c"}]}});
        let changed = |seed| {
            let mut tree = Tree::from(&object);
            mutate(&mut tree, None, &mut Dice::new(seed));
            tree.json()
        };
        let mut others = 0;
        for seed in 0..200 {
            assert_eq!(changed(seed), changed(seed));
            others += usize::from(changed(seed) != Tree::from(&object).json());
        }
        assert!(others > 150, "{others} of 200 were changed");
    }
}
