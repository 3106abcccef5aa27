//! What a webhook said, in words.

use std::fmt;

use serde_json::Value;
use watchkeeper_diff::{Wording, compare};
use watchkeeper_schema::patch::JsonPatch;

use crate::failure::Failure;
use crate::terminal::one_line;

/// How much of a value is shown.
const LIMIT: usize = 120;

/// What a webhook said.
pub(super) struct Verdict {
    /// `allowed`, `denied` or `converted`, with what there is to say about it.
    headline: String,
    /// Why the write was denied.
    denial: Option<String>,
    warnings: Vec<String>,
    /// What it changes, field by field.
    changes: Vec<String>,
    /// What it adds to the audit log.
    annotations: Vec<String>,
}

impl Verdict {
    /// Whether the write was denied.
    pub(super) fn is_denial(&self) -> bool {
        self.denial.is_some()
    }

    pub(super) fn of_admission(request: &Value, response: &Value) -> Result<Self, Failure> {
        let Some(allowed) = response["allowed"].as_bool() else {
            return Err(Failure::running("the answer does not say whether the write is allowed"));
        };
        let status = &response["status"];
        let text = |value: &Value| value.as_str().map(one_line).unwrap_or_default();
        let denial = (!allowed).then(|| {
            let code = status["code"].as_u64().map(|code| format!("{code} ")).unwrap_or_default();
            match (text(&status["message"]), text(&status["reason"])) {
                (message, reason) if message.is_empty() && reason.is_empty() => {
                    format!("{code}without explanation")
                }
                (message, reason) if message.is_empty() => format!("{code}{reason}"),
                (message, reason) if reason.is_empty() => format!("{code}{message}"),
                (message, reason) => format!("{code}{reason}: {message}"),
            }
        });
        let changes = match response["patch"].as_str().filter(|patch| !patch.is_empty()) {
            Some(patch) if allowed => patched(request, response, patch)?,
            _ => Vec::new(),
        };
        let annotations = response["auditAnnotations"].as_object().into_iter().flatten();
        Ok(Self {
            headline: if allowed { "allowed".to_owned() } else { "denied".to_owned() },
            denial,
            warnings: response["warnings"].as_array().into_iter().flatten().map(text).collect(),
            changes,
            annotations: annotations
                .map(|(key, value)| format!("{}: {}", one_line(key), text(value)))
                .collect(),
        })
    }

    pub(super) fn of_conversion(request: &Value, response: &Value) -> Result<Self, Failure> {
        let result = &response["result"];
        if result["status"] != "Success" {
            let why = result["message"].as_str().map_or_else(|| result.to_string(), one_line);
            return Err(Failure::running(format!("the webhook did not convert: {why}")));
        }
        let empty = Vec::new();
        let (before, after) = (
            request["objects"].as_array().unwrap_or(&empty),
            response["convertedObjects"].as_array().unwrap_or(&empty),
        );
        if before.len() != after.len() {
            return Err(Failure::running(format!(
                "the webhook answered with {} objects and was asked for {}",
                after.len(),
                before.len()
            )));
        }
        let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
        for (object, was) in after.iter().zip(before) {
            let same = |pointer: &str| object.pointer(pointer) == was.pointer(pointer);
            if object["apiVersion"] != desired {
                return Err(Failure::running(format!(
                    "the converted object is of {} and not of {desired}",
                    object["apiVersion"]
                )));
            }
            if let Some(field) = ["/kind", "/metadata/name", "/metadata/namespace", "/metadata/uid"]
                .into_iter()
                .find(|field| !same(field))
            {
                let field = field.trim_start_matches('/').replace('/', ".");
                return Err(Failure::running(format!(
                    "the conversion changes {field}, which no server accepts"
                )));
            }
        }
        let changes = before.iter().zip(after).flat_map(|(before, after)| differences(before, after));
        let several = if after.len() == 1 { "" } else { "s" };
        Ok(Self {
            headline: format!("converted {} object{several} to {desired}", after.len()),
            denial: None,
            warnings: Vec::new(),
            changes: changes.collect(),
            annotations: Vec::new(),
        })
    }
}

/// What a patch changes.
fn patched(request: &Value, response: &Value, patch: &str) -> Result<Vec<String>, Failure> {
    if response["patchType"] != "JSONPatch" {
        return Err(Failure::running(format!(
            "the patch is of the type {} and not JSONPatch",
            response["patchType"]
        )));
    }
    let patch = watchkeeper_go::base64::decode(patch)
        .map_err(|error| Failure::running(format!("the patch is not base64: {error}")))?;
    let patch = JsonPatch::decode(&patch)
        .map_err(|error| Failure::running(format!("the patch cannot be read: {error}")))?;
    let object = &request["object"];
    let after = patch
        .apply(object)
        .map_err(|error| Failure::running(format!("the patch does not fit the object: {error}")))?;
    let changes = differences(object, &after);
    Ok(if changes.is_empty() { vec!["(a patch that changes nothing)".to_owned()] } else { changes })
}

fn differences(before: &Value, after: &Value) -> Vec<String> {
    compare(before, after).iter().map(|difference| Wording::of(difference, LIMIT).to_string()).collect()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.denial {
            Some(why) => writeln!(f, "{}: {why}", self.headline)?,
            None => writeln!(f, "{}", self.headline)?,
        }
        for (title, lines) in [
            ("warnings", &self.warnings),
            ("changes", &self.changes),
            ("audit annotations", &self.annotations),
        ] {
            if !lines.is_empty() {
                writeln!(f, "{title}:")?;
            }
            for line in lines {
                writeln!(f, "  {line}")?;
            }
        }
        Ok(())
    }
}
