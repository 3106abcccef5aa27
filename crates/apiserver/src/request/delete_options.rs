use super::query::Query;
use super::rejected::Rejected;
use super::write_options::read_dry_run;
use serde_json::{Map, Value};
use watchkeeper_go::json as go_json;
use watchkeeper_go::quote;
use watchkeeper_schema::{FieldError, Path};

/// How a deletion is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    /// How long the object may take to go; `None` for what its kind does by itself.
    pub(crate) grace_period_seconds: Option<i64>,
    /// What becomes of the objects it owns.
    pub(crate) propagation_policy: Option<Propagation>,
    /// The older way to say so: `true` is [`Propagation::Orphan`].
    pub(crate) orphan_dependents: Option<bool>,
    /// The uid the object must have.
    pub(crate) uid: Option<String>,
    /// The version the object must have.
    pub(crate) resource_version: Option<String>,
    /// Whether to do everything but keep the result.
    pub(crate) dry_run: bool,
}

/// What becomes of the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They lose their owner.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
}

/// Options that are read but not checked.
#[derive(Default)]
struct Unchecked {
    grace_period_seconds: Option<i64>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    uid: Option<String>,
    resource_version: Option<String>,
    dry_run: Vec<String>,
}

impl DeleteOptions {
    /// Reads and checks the options of a deletion. If there is a body, the query is not looked at.
    pub(crate) fn read(query: &Query, body: Option<&Value>) -> Result<Self, Rejected> {
        match body {
            Some(body) => Unchecked::from_body(body).map_err(Rejected::BadRequest)?,
            None => Unchecked::from_query(query)?,
        }
        .check()
    }
}

impl Unchecked {
    fn from_query(query: &Query) -> Result<Self, Rejected> {
        let text = |name: &str| query.get(name).map(str::to_owned);
        Ok(Self {
            grace_period_seconds: query.integer("gracePeriodSeconds")?,
            propagation_policy: text("propagationPolicy"),
            orphan_dependents: query.flag("orphanDependents"),
            uid: text("uid").filter(|uid| !uid.is_empty()),
            resource_version: text("resourceVersion").filter(|version| !version.is_empty()),
            dry_run: query.all("dryRun").map(str::to_owned).collect(),
        })
    }

    fn from_body(body: &Value) -> Result<Self, String> {
        let Value::Object(body) = body else {
            let found = go_json::kind(body);
            return Err(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
            ));
        };
        check_kind(body)?;
        let empty = Map::new();
        let preconditions = match body.get("preconditions") {
            None | Some(Value::Null) => &empty,
            Some(Value::Object(preconditions)) => preconditions,
            Some(other) => return Err(mismatch(other, "DeleteOptions.preconditions", "v1.Preconditions")),
        };
        let uid = text(preconditions.get("uid"), "Preconditions.preconditions.uid", "types.UID")?;
        let version = preconditions.get("resourceVersion");
        let resource_version = text(version, "Preconditions.preconditions.resourceVersion", "string")?;
        let policy = body.get("propagationPolicy");
        Ok(Self {
            grace_period_seconds: match body.get("gracePeriodSeconds") {
                None | Some(Value::Null) => None,
                Some(value) => Some(
                    value
                        .as_i64()
                        .ok_or_else(|| mismatch_number(value, "DeleteOptions.gracePeriodSeconds", "int64"))?,
                ),
            },
            propagation_policy: text(policy, "DeleteOptions.propagationPolicy", "v1.DeletionPropagation")?,
            orphan_dependents: match body.get("orphanDependents") {
                None | Some(Value::Null) => None,
                Some(Value::Bool(orphan)) => Some(*orphan),
                Some(other) => return Err(mismatch(other, "DeleteOptions.orphanDependents", "bool")),
            },
            uid,
            resource_version,
            dry_run: match body.get("dryRun") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(values)) => values
                    .iter()
                    .map(|value| Ok(text(Some(value), "DeleteOptions.dryRun", "string")?.unwrap_or_default()))
                    .collect::<Result<_, String>>()?,
                Some(other) => return Err(mismatch(other, "DeleteOptions.dryRun", "[]string")),
            },
        })
    }

    fn check(self) -> Result<DeleteOptions, Rejected> {
        let at = Path::root().child("propagationPolicy");
        let mut errors = Vec::new();
        let named = self.propagation_policy.as_deref();
        if let Some(policy) = named.filter(|_| self.orphan_dependents.is_some()) {
            let rule = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(&at, policy, rule));
        }
        let propagation_policy = match named {
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(&at, other, supported));
                None
            }
            None => None,
        };
        let dry_run = read_dry_run(self.dry_run, &mut errors);
        Rejected::unless_valid("DeleteOptions", errors)?;
        Ok(DeleteOptions {
            grace_period_seconds: self.grace_period_seconds,
            propagation_policy,
            orphan_dependents: self.orphan_dependents,
            uid: self.uid,
            resource_version: self.resource_version,
            dry_run,
        })
    }
}

/// A body may leave out what it is; `DeleteOptions` belong to every group.
fn check_kind(body: &Map<String, Value>) -> Result<(), String> {
    let read = |name: &str| {
        text(body.get(name), &format!(".{name}"), "string")
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
    };
    let version = read("apiVersion")?.unwrap_or_default();
    let kind = read("kind")?.unwrap_or_default();
    if version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {version}"));
    }
    match kind.as_str() {
        "" | "DeleteOptions" => Ok(()),
        kind => Err(format!(
            "no kind {} is registered for version {} in scheme \"watchkeeper\"",
            quote(kind),
            quote(&version)
        )),
    }
}

fn text(value: Option<&Value>, field: &str, go_type: &str) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(mismatch(other, field, go_type)),
    }
}

fn mismatch(value: &Value, field: &str, go_type: &str) -> String {
    let found = go_json::kind(value);
    format!("json: cannot unmarshal {found} into Go struct field {field} of type {go_type}")
}

/// A number that is no integer is shown; anything else is just of another type.
fn mismatch_number(value: &Value, field: &str, go_type: &str) -> String {
    match value {
        Value::Number(number) => {
            format!("json: cannot unmarshal number {number} into Go struct field {field} of type {go_type}")
        }
        other => mismatch(other, field, go_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{assert_recorded, recorded};
    use serde_json::json;

    #[test]
    fn options_are_read_and_refused_as_kube_apiserver_does() {
        for mut case in recorded(include_str!("cases/options.jsonl")) {
            if case["kind"] != "delete" {
                continue;
            }
            // The real message names a source file of the real server.
            let bad = case["bad"].as_str().and_then(|bad| bad.split_once(" in scheme"));
            if let Some((bad, _)) = bad {
                case["bad"] = format!("{bad} in scheme \"watchkeeper\"").into();
            }
            // A value does not keep how a number was written that it cannot hold.
            if case["body"]["gracePeriodSeconds"].as_f64() == Some(1e20) {
                case["bad"] = case["bad"].as_str().unwrap().replace("99999999999999999999", "1e+20").into();
            }
            let query = Query::parse(case["query"].as_str().unwrap());
            let read = DeleteOptions::read(&query, case.get("body"));
            let value = read.map(|read| {
                json!({
                    "gracePeriodSeconds": read.grace_period_seconds,
                    "propagationPolicy": read.propagation_policy.map(|policy| format!("{policy:?}")),
                    "orphanDependents": read.orphan_dependents,
                    "uid": read.uid,
                    "resourceVersion": read.resource_version,
                    "dryRun": read.dry_run,
                })
            });
            assert_recorded(&case, value);
        }
    }
}
