//! Patches of the four types.

use serde_json::Value;

use crate::mutation::{bent, mutate};
use crate::{Dice, Tree, schema, values};

/// How a patch is written, as the type of its body says.
pub(crate) const TYPES: [&str; 4] = [
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// A patch of this type for an object like this one.
pub(crate) fn patch(content_type: &str, object: &Tree, schema: Option<&Value>, dice: &mut Dice) -> Tree {
    match content_type {
        "application/json-patch+json" => {
            let mut patch = Tree::List((0..1 + dice.below(4)).map(|_| operation(object, dice)).collect());
            if dice.chance(15) {
                mutate(&mut patch, None, dice);
            }
            patch
        }
        "application/apply-patch+yaml" => {
            let mut applied = part(object, schema, dice);
            for name in ["apiVersion", "kind"] {
                if let Some(value) = object.get(name) {
                    *applied.field(name) = value.clone();
                }
            }
            if dice.chance(50) {
                mutate(&mut applied, schema, dice);
            }
            if let Tree::Map(_) = applied.field("metadata")
                && dice.chance(90)
            {
                applied.field("metadata").field("managedFields");
                if let Tree::Map(fields) = applied.field("metadata") {
                    fields.retain(|(name, _)| name != "managedFields");
                }
            }
            applied
        }
        content_type => {
            let mut merged = part(object, schema, dice);
            if dice.chance(50) {
                mutate(&mut merged, schema, dice);
            }
            if content_type.contains("strategic") && dice.chance(50) {
                directive(&mut merged, dice);
            }
            merged
        }
    }
}

/// Some of the object, some of it new.
fn part(object: &Tree, schema: Option<&Value>, dice: &mut Dice) -> Tree {
    let mut part = Tree::Map(Vec::new());
    if let Tree::Map(fields) = object {
        for (name, value) in fields {
            if name != "apiVersion" && name != "kind" && name != "metadata" && dice.chance(40) {
                *part.field(name) = value.clone();
            }
        }
    }
    if let Some(schema) = schema
        && dice.chance(50)
    {
        schema::graft(&mut part, schema, dice);
    }
    if dice.chance(30) {
        *part.field("metadata").field(dice.pick(&["labels", "annotations"])).field("p") =
            if dice.chance(80) { Tree::text(values::text("", dice)) } else { Tree::Null };
    }
    part
}

/// One operation of a JSON patch, on a place that is likely there.
fn operation(object: &Tree, dice: &mut Dice) -> Tree {
    let mut operation = Tree::Map(Vec::new());
    let name = dice
        .pick(&["add", "add", "replace", "replace", "remove", "test", "move", "copy", "Add", "", "nothing"]);
    *operation.field("op") = Tree::text(name);
    *operation.field("path") = Tree::text(pointer(object, dice));
    if matches!(name, "move" | "copy") || dice.chance(3) {
        *operation.field("from") = Tree::text(pointer(object, dice));
    }
    if !matches!(name, "move" | "copy" | "remove") || dice.chance(5) {
        *operation.field("value") = match dice.chance(50) {
            true => values::any("", dice),
            false => Tree::text(values::text("", dice)),
        };
    }
    if dice.chance(5) {
        mutate(&mut operation, None, dice);
    }
    operation
}

/// The pointer to some value of an object, now and then to none.
fn pointer(object: &Tree, dice: &mut Dice) -> String {
    let mut pointer = String::new();
    let mut tree = object;
    while dice.chance(80) {
        match tree {
            Tree::Map(fields) if !fields.is_empty() => {
                let (name, value) = dice.item(fields);
                pointer += &format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                tree = value;
            }
            Tree::List(items) if !items.is_empty() => {
                let at = dice.below(items.len());
                pointer += &format!("/{at}");
                tree = &items[at];
            }
            _ => break,
        }
    }
    match dice.below(12) {
        0 => bent(&pointer, dice),
        1 => {
            pointer
                + dice.pick(&[
                    "/-", "/0", "/-1", "/01", "/99999999999999999999", "/", "//", "/~", "/~2",
                    "/metadata/labels", "/x", "/18446744073709551615", "/1e3", "/+1",
                ])
        }
        2 => dice
            .pick(&[
                "", "/", "x", "/metadata/name", "/metadata/labels/a", "/metadata/finalizers/-",
                "/metadata/managedFields", "/kind", "/metadata/resourceVersion", "/metadata", "/status",
                "/spec",
            ])
            .to_owned(),
        _ => pointer,
    }
}

/// A directive of a strategic merge patch, somewhere.
fn directive(tree: &mut Tree, dice: &mut Dice) {
    let place = dice.below(tree.count());
    if let Some((_, found)) = tree.at(place)
        && let Tree::Map(_) = found
    {
        let name = dice.pick(&[
            "$patch", "$patch", "$retainKeys", "$deleteFromPrimitiveList/finalizers",
            "$setElementOrder/containers", "$setElementOrder/ports", "$deleteFromPrimitiveList/x", "$x",
        ]);
        *found.field(name) = match dice.below(6) {
            0..=2 => Tree::text(dice.pick(&["delete", "replace", "merge", "x", ""])),
            3 => Tree::List(vec![Tree::text("a"), Tree::text("name")]),
            4 => Tree::List(vec![Tree::Map(vec![("name".into(), Tree::text("a"))])]),
            _ => values::any("", dice),
        };
    }
}
