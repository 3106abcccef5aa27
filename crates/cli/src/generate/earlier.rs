//! Definitions that were released earlier.

use std::fs;
use std::path::Path;

use serde_json::Value;
use watchkeeper_package::{self as package, Definition, Finding};
use watchkeeper_schema::yaml;

use crate::failure::Failure;

/// What breaks those who use the definitions of a file or folder. Definitions that are no longer there break them, too.
pub(crate) fn compare(path: &Path, now: &[Definition<'_>]) -> Result<Vec<Finding>, Failure> {
    let objects = read(path)?;
    let mut findings = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        let before = Definition::read(at, object).map_err(Failure::input)?;
        match now.iter().find(|definition| definition.name == before.name) {
            Some(after) => findings.extend(package::breaking(&before, after)),
            None => findings.push(Finding {
                severity: package::Severity::Error,
                definition: before.name.to_owned(),
                field: String::new(),
                message: "the definition is gone: whoever uninstalls it deletes all objects of it".to_owned(),
            }),
        }
    }
    Ok(findings)
}

fn read(path: &Path) -> Result<Vec<Value>, Failure> {
    let fails = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::input(format!("--against {}: {error}", path.display()))
    };
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(|error| fails(path, &error))? {
            let file = entry.map_err(|error| fails(path, &error))?.path();
            if file
                .extension()
                .is_some_and(|extension| extension == "yaml" || extension == "yml" || extension == "json")
            {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| fails(&file, &error))?;
        for document in yaml::documents(&text) {
            let value = yaml::decode(document.text.as_bytes()).map_err(|error| fails(&file, &error))?.value;
            if value.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition") {
                found.push(value);
            }
        }
    }
    match found.is_empty() {
        true => Err(fails(path, &"there is no CustomResourceDefinition in it")),
        false => Ok(found),
    }
}
