use serde_json::{Map, Value};

use crate::compare::Difference;
use crate::path::{Path, Segment};

/// The field managers that made a change (`kubectl-edit`, `kubelet`), as far as `metadata.managedFields` shows
/// them: those with a new entry or a new time; where times are too coarse, the last owner of a field that differs.
///
/// For a new object (`old` is `None`), all managers are returned. Usually there is one name; there are several if the
/// states are several changes apart.
pub fn managers(old: Option<&Value>, new: &Value, differences: &[Difference]) -> Vec<String> {
    let before: Vec<Entry<'_>> = old.map(entries).unwrap_or_default();
    let after = entries(new);
    let moved = after.iter().filter(|entry| {
        let known = before.iter().find(|known| known.is_of(entry));
        known.is_none_or(|known| known.time != entry.time)
    });
    let mut names: Vec<&str> = moved.map(|entry| entry.manager).collect();
    if names.is_empty() {
        names = last_owner(&after, differences).into_iter().collect();
    }
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}

/// One writer in one way: what `managedFields` has one entry for.
struct Entry<'a> {
    manager: &'a str,
    operation: Option<&'a str>,
    subresource: Option<&'a str>,
    time: Option<&'a str>,
    fields: Option<&'a Map<String, Value>>,
}

impl Entry<'_> {
    fn is_of(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
    }
}

fn entries(object: &Value) -> Vec<Entry<'_>> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .filter_map(|entry| {
            Some(Entry {
                manager: entry["manager"].as_str().filter(|manager| !manager.is_empty())?,
                operation: entry["operation"].as_str(),
                subresource: entry["subresource"].as_str(),
                time: entry["time"].as_str(),
                fields: entry["fieldsV1"].as_object(),
            })
        })
        .collect()
}

/// The one among the owners of the fields that differ whose entry is the newest.
fn last_owner<'a>(entries: &[Entry<'a>], differences: &[Difference]) -> Option<&'a str> {
    let owns = |entry: &&Entry<'_>| {
        let fields = entry.fields;
        fields.is_some_and(|fields| differences.iter().any(|difference| has(fields, &difference.path)))
    };
    // All times are of one form and one zone, in which the order of the text is the order of the times.
    entries.iter().filter(owns).max_by_key(|entry| entry.time).map(|entry| entry.manager)
}

/// Whether a set of fields (`{"f:spec": {"f:replicas": {}}}`) has the field of a path, or a field above or below it.
fn has(fields: &Map<String, Value>, path: &Path) -> bool {
    let mut fields = fields;
    for segment in &path.0 {
        let child = match segment {
            Segment::Field(name) => fields.get(&format!("f:{name}")),
            Segment::Item { key, value } => {
                fields.iter().find(|(name, _)| is_item(name, key, value)).map(|(_, child)| child)
            }
            Segment::Index(_) => None,
        };
        match child.and_then(Value::as_object) {
            Some(child) => fields = child,
            // A leaf of the set, such as a list that is owned as a whole, has all that is below it.
            None => return fields.keys().all(|name| name == ".") && !std::ptr::eq(segment, &path.0[0]),
        }
    }
    true
}

/// Whether `k:{"containerPort":80,"protocol":"TCP"}` has this key with this value.
fn is_item(name: &str, key: &str, value: &str) -> bool {
    let keys = name.strip_prefix("k:").and_then(|keys| serde_json::from_str::<Map<String, Value>>(keys).ok());
    keys.is_some_and(|keys| {
        keys.get(key).is_some_and(|found| {
            Segment::item(key, found) == Segment::Item { key: key.into(), value: value.into() }
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compare;

    fn entry(manager: &str, time: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields})
    }

    fn object(replicas: u64, image: &str, entries: &[Value]) -> Value {
        json!({
            "metadata": {"managedFields": entries},
            "spec": {"replicas": replicas, "containers": [{"name": "web", "image": image}], "args": [image]},
        })
    }

    fn of(old: &Value, new: &Value) -> Vec<String> {
        managers(Some(old), new, &compare(old, new))
    }

    #[test]
    fn who_has_a_new_time_or_a_new_entry_made_the_change() {
        let scale = |time| entry("autoscaler", time, json!({"f:spec": {"f:replicas": {}}}));
        let edit = |time| entry("kubectl-edit", time, json!({"f:spec": {"f:args": {}}}));
        let old = object(1, "a", &[scale("10:00"), edit("10:00")]);
        assert_eq!(of(&old, &object(2, "a", &[scale("10:01"), edit("10:00")])), ["autoscaler"]);
        assert_eq!(
            of(&old, &object(2, "a", &[scale("10:00"), edit("10:00"), entry("new", "10:01", json!({}))])),
            ["new"]
        );
        assert_eq!(
            of(&old, &object(2, "b", &[scale("10:01"), edit("10:02")])),
            ["autoscaler", "kubectl-edit"]
        );
        assert_eq!(managers(None, &old, &[]), ["autoscaler", "kubectl-edit"]);
        assert_eq!(of(&object(1, "a", &[]), &object(2, "a", &[])), [""; 0]);
    }

    #[test]
    fn within_one_second_the_owner_of_the_field_made_the_change() {
        let entries = [
            entry(
                "early",
                "10:00",
                json!({"f:spec": {"f:replicas": {}, "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}}}),
            ),
            entry("autoscaler", "10:01", json!({"f:spec": {"f:replicas": {}}})),
            entry("deployer", "10:01", json!({"f:spec": {"f:args": {}}})),
        ];
        let old = object(1, "a", &entries);
        assert_eq!(of(&old, &object(2, "a", &entries)), ["autoscaler"]);
        assert_eq!(
            of(
                &old,
                &json!({"metadata": old["metadata"], "spec": {"replicas": 1, "containers": [{"name": "web", "image": "a"}], "args": ["x"]}})
            ),
            ["deployer"]
        );
        assert_eq!(
            of(
                &old,
                &json!({"metadata": old["metadata"], "spec": {"replicas": 1, "containers": [{"name": "web", "image": "x"}], "args": ["a"]}})
            ),
            ["early"]
        );
        assert_eq!(
            of(
                &old,
                &json!({"metadata": old["metadata"], "spec": {"other": 1, "replicas": 1, "containers": [{"name": "web", "image": "a"}], "args": ["a"]}})
            ),
            [""; 0]
        );
    }
}
