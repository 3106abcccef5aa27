use super::query::Query;
use super::rejected::Rejected;
use serde_json::Value;
use watchkeeper_schema::{FieldError, Path};

/// How a write is meant, from its query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    /// Whether to do everything but keep the result.
    pub(crate) dry_run: bool,
    /// Who writes, for the managed fields; empty if it was not said.
    pub(crate) field_manager: String,
    /// What becomes of unknown and repeated fields.
    pub(crate) field_validation: FieldValidation,
    /// Whether an apply takes fields away from others. Only set in apply patches.
    pub(crate) force: Option<bool>,
}

/// What becomes of unknown and repeated fields in a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the client is warned.
    #[default]
    Warn,
    /// They are an error.
    Strict,
}

impl WriteOptions {
    /// The options of a create.
    pub(crate) fn of_create(query: &Query) -> Result<Self, Rejected> {
        Self::read(query, "CreateOptions", Vec::new())
    }

    /// The options of an update.
    pub(crate) fn of_update(query: &Query) -> Result<Self, Rejected> {
        Self::read(query, "UpdateOptions", Vec::new())
    }

    /// The options of a patch. An apply must say who applies; only an apply may force.
    pub(crate) fn of_patch(query: &Query, is_apply: bool) -> Result<Self, Rejected> {
        let force = query.flag("force");
        let mut errors = Vec::new();
        if is_apply && query.get("fieldManager").unwrap_or_default().is_empty() {
            let at = Path::root().child("fieldManager");
            errors.push(FieldError::required(&at, "is required for apply patch"));
        }
        if !is_apply && force.is_some() {
            let at = Path::root().child("force");
            errors.push(FieldError::forbidden(&at, "may not be specified for non-apply patch"));
        }
        Ok(Self { force, ..Self::read(query, "PatchOptions", errors)? })
    }

    fn read(query: &Query, kind: &'static str, mut errors: Vec<FieldError>) -> Result<Self, Rejected> {
        let field_manager = query.text("fieldManager");
        check_manager(&field_manager, &mut errors);
        let dry_run = read_dry_run(query.all("dryRun").map(str::to_owned).collect(), &mut errors);
        let field_validation = match query.get("fieldValidation").unwrap_or_default() {
            "Ignore" => FieldValidation::Ignore,
            "Warn" | "" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                let at = Path::root().child("fieldValidation");
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported(&at, other, supported));
                FieldValidation::default()
            }
        };
        Rejected::unless_valid(kind, errors)?;
        Ok(Self { dry_run, field_manager, field_validation, force: None })
    }
}

/// Whether the values of `dryRun` ask for one; `All` is the only value there is.
pub(super) fn read_dry_run(values: Vec<String>, errors: &mut Vec<FieldError>) -> bool {
    let is_asked = !values.is_empty();
    if values.iter().any(|value| value != "All") {
        let at = Path::root().child("dryRun");
        errors.push(FieldError::not_supported(&at, Value::from(values), ["All"]));
    }
    is_asked
}

/// The name of a field manager is short and can be printed.
fn check_manager(name: &str, errors: &mut Vec<FieldError>) {
    const LIMIT: usize = 128;
    let at = Path::root().child("fieldManager");
    if name.len() > LIMIT {
        errors.push(FieldError::too_long(&at, 128));
    }
    for (position, char) in name.char_indices().filter(|(_, char)| !watchkeeper_go::quote::is_print(*char)) {
        let rule = format!("invalid character U+{:04X} (at position {position})", u32::from(char));
        errors.push(FieldError::invalid(&at, name, rule));
        // The name is repeated in every message: a long one with many is answered in part.
        if name.len() > LIMIT && errors.len() > LIMIT {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{assert_recorded, recorded};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn options_are_read_and_refused_as_kube_apiserver_does() {
        for case in recorded(include_str!("cases/options.jsonl")) {
            let query = Query::parse(case["query"].as_str().unwrap());
            let read = match case["kind"].as_str().unwrap() {
                "create" => WriteOptions::of_create(&query),
                "update" => WriteOptions::of_update(&query),
                "patch" => WriteOptions::of_patch(&query, false),
                "apply" => WriteOptions::of_patch(&query, true),
                _ => continue,
            };
            let value = read.map(|read| {
                // What was not said is a warning.
                let said = case["value"]["fieldValidation"].as_str().unwrap();
                let validation = format!("{:?}", read.field_validation);
                assert_eq!(validation, if said.is_empty() { "Warn" } else { said }, "{case}");
                let mut value = json!({
                    "dryRun": read.dry_run,
                    "fieldManager": read.field_manager,
                    "fieldValidation": said,
                });
                if case["value"].get("force").is_some() {
                    value["force"] = json!(read.force);
                }
                value
            });
            assert_recorded(&case, value);
        }
    }

    #[test]
    fn a_hostile_manager_gets_an_answer_of_bounded_size() {
        let query = Query::parse(&format!("fieldManager={}", "%01".repeat(20_000)));
        let Err(Rejected::Invalid { errors, .. }) = WriteOptions::of_create(&query) else { panic!() };
        assert!(errors.len() < 200);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::request::cases(256)))]

        #[test]
        fn any_query_is_read_or_rejected(text in "((dryRun|fieldManager|fieldValidation|force)=.{0,8}&){0,5}", is_apply in any::<bool>()) {
            let _ = WriteOptions::of_patch(&Query::parse(&text), is_apply);
        }
    }
}
