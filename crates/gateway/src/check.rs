//! Objects in files, checked without a gateway.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use watchkeeper_core::Key;
use watchkeeper_schema::yaml::{self, Places};

use crate::compile::{Compiler, Settings};
use crate::kinds::GROUP;
use crate::object::{Input, ObjectId, Problem};
use crate::table::Table;

/// What was found in files.
#[derive(Debug)]
pub struct Checked {
    /// How many objects of the gateway there are.
    pub objects: usize,
    /// What is wrong, in the order of files.
    pub errors: Vec<Finding>,
    /// What may be right, but looks odd: names of objects that are not in these files, routes that match the same.
    pub warnings: Vec<Finding>,
    /// The table that the objects make.
    pub table: Table,
}

/// Something that was found: where, and what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// The line and the column, from 1.
    pub place: (usize, usize),
    /// Which document of the file, from 1.
    pub document: usize,
    /// The object, if that much could be read.
    pub object: Option<String>,
    /// What was found, with its field.
    pub problem: Problem,
}

/// `routes.d/a.yaml:12:3: document 2: GatewayRoute default/shop: spec.rules[0].backends[0].name: ...`
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, place: (line, column), document, object, problem } = self;
        write!(f, "{}:{line}:{column}: document {document}: ", file.display())?;
        if let Some(object) = object {
            write!(f, "{object}: ")?;
        }
        write!(f, "{problem}")
    }
}

/// Where an object is.
struct Spot {
    file: PathBuf,
    document: usize,
    lines_before: usize,
    places: Places,
    /// What comes before its fields, for an item of a list.
    pointer: String,
}

impl Spot {
    fn finding(&self, object: Option<String>, problem: Problem) -> Finding {
        let place = self.places.of(&format!("{}{}", self.pointer, pointer(&problem.field)));
        Finding {
            file: self.file.clone(),
            place: (self.lines_before + place.line, place.column),
            document: self.document,
            object,
            problem,
        }
    }
}

/// `spec.rules[0].path` as a JSON pointer.
fn pointer(field: &str) -> String {
    let mut text = String::new();
    for step in field.split('.').filter(|step| !step.is_empty()) {
        for part in step.split(['[', ']']).filter(|part| !part.is_empty()) {
            text.push('/');
            text.push_str(&part.replace('~', "~0").replace('/', "~1"));
        }
    }
    text
}

/// Checks all objects in a file, or in the files of a directory and of those below it.
///
/// # Errors
///
/// If the path cannot be read.
pub fn check(path: &Path, settings: Settings) -> std::io::Result<Checked> {
    let mut files = Vec::new();
    match path.metadata()?.is_dir() {
        true => collect(path, &mut files)?,
        false => files.push(path.to_owned()),
    }
    files.sort();
    let mut checker =
        Checker { compiler: Compiler::new(settings), spots: HashMap::new(), errors: Vec::new() };
    for file in files {
        match fs::read_to_string(&file) {
            Ok(text) => checker.file(&file, &text),
            Err(error) => {
                let problem = Problem::new("", error.to_string());
                checker.errors.push(Finding { file, place: (1, 1), document: 1, object: None, problem });
            }
        }
    }
    Ok(checker.finish())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let is_document =
            path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        match path.is_dir() {
            _ if is_hidden => {}
            true => collect(&path, files)?,
            false if is_document => files.push(path),
            false => {}
        }
    }
    Ok(())
}

struct Checker {
    compiler: Compiler,
    spots: HashMap<ObjectId, Spot>,
    errors: Vec<Finding>,
}

impl Checker {
    fn file(&mut self, file: &Path, text: &str) {
        // JSON is YAML, but for several values in a row, which nobody writes by hand.
        for part in yaml::documents(text) {
            let spot = |places: Places, pointer: String| Spot {
                file: file.to_owned(),
                document: part.number,
                lines_before: part.lines_before,
                places,
                pointer,
            };
            match yaml::read(part.text) {
                Err(misread) => {
                    let said = misread.error.to_string();
                    let said = said.strip_prefix("error converting YAML to JSON: yaml: ").unwrap_or(&said);
                    self.errors.push(Finding {
                        file: file.to_owned(),
                        place: (part.lines_before + misread.line, misread.column),
                        document: part.number,
                        object: None,
                        problem: Problem::new("", said),
                    });
                }
                Ok(yaml::Document { value, doubled }) => {
                    if let Some(key) = doubled.first() {
                        let problem = Problem::new("", format!("the key {} is there twice", key.key));
                        let mut finding = spot(Places::default(), String::new()).finding(None, problem);
                        finding.place = (part.lines_before + key.line, key.column);
                        self.errors.push(finding);
                        continue;
                    }
                    let places = yaml::places(part.text);
                    match (
                        value.get("kind").and_then(Value::as_str),
                        value.get("items").and_then(Value::as_array),
                    ) {
                        (Some(kind), Some(items)) if kind.ends_with("List") => {
                            for (at, item) in items.iter().enumerate() {
                                self.value(item.clone(), spot(places.clone(), format!("/items/{at}")));
                            }
                        }
                        _ => self.value(value, spot(places, String::new())),
                    }
                }
            }
        }
    }

    fn value(&mut self, value: Value, spot: Spot) {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let is_ours = text("/apiVersion").is_some_and(|version| version.split('/').next() == Some(GROUP));
        let kind = text("/kind").unwrap_or_default();
        match Input::read(value) {
            Err(problem) => self.errors.push(spot.finding(None, problem)),
            Ok(None) if is_ours => {
                let problem = Problem::new("kind", format!("{kind} is not known in this version of {GROUP}"));
                self.errors.push(spot.finding(None, problem));
            }
            Ok(None) => {}
            Ok(Some(input)) => {
                if let Some(first) = self.spots.get(&input.id) {
                    let first = format!("is in {} too, in document {}", first.file.display(), first.document);
                    self.errors
                        .push(spot.finding(Some(input.id.to_string()), Problem::new("metadata.name", first)));
                    return;
                }
                let id = input.id.clone();
                self.compiler.apply(&(0, Key::new(None, &id.to_string())), &id, Some(input));
                self.spots.insert(id, spot);
            }
        }
    }

    fn finish(mut self) -> Checked {
        let mut warnings = Vec::new();
        for (id, spot) in &self.spots {
            let object = Some(id.to_string());
            self.errors.extend(
                self.compiler
                    .problems(id)
                    .iter()
                    .map(|problem| spot.finding(object.clone(), problem.clone())),
            );
            let Some(report) = self.compiler.report(id) else { continue };
            let is_valid = report.accepted.is_true || report.accepted.reason == "Conflicted";
            let odd = [
                (&report.resolved, !report.resolved.is_true),
                (&report.accepted, report.accepted.reason == "Conflicted"),
            ];
            for (condition, _) in odd.iter().filter(|(_, is_odd)| *is_odd && is_valid) {
                for said in condition.message.split("; ") {
                    let (field, message) = said.split_once(": ").unwrap_or(("", said));
                    warnings.push(spot.finding(object.clone(), Problem::new(field, message)));
                }
            }
        }
        self.errors.sort();
        warnings.sort();
        let objects = self.spots.keys().filter(|id| id.kind.is_own() || id.kind.is_standard()).count();
        Checked { objects, errors: self.errors, warnings, table: self.compiler.table().clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_found_by_file_line_and_field() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.yaml");
        fs::write(
            &file,
            "# first\n\
             apiVersion: gateway.watchkeeper.dev/v1alpha1\nkind: GatewayListener\nmetadata: {name: web}\nspec: {port: 0}\n---\n\
             apiVersion: gateway.watchkeeper.dev/v1alpha1\nkind: GatewayRoute\nmetadata:\n  name: shop\nspec:\n  rules:\n  \
             - matches:\n    - path:\n        prefix: shop\n    backends:\n    - name: nobody\n  - matches: []\n    bakends: []\n---\n\
             apiVersion: gateway.watchkeeper.dev/v1alpha1\nkind: GatewayRoute\nmetadata: {name: two}\nspec:\n  rules:\n  - backends: [{name: nobody}]\n---\n\
             a: [\n",
        )
        .unwrap();
        let checked = check(directory.path(), Settings::default()).unwrap();
        let said: Vec<String> = checked.errors.iter().map(ToString::to_string).collect();
        let shown = |text: &str| text.replace(&file.display().to_string(), "a.yaml");
        let said: Vec<String> = said.iter().map(|text| shown(text)).collect();
        assert_eq!(said.len(), 2, "{said:#?}");
        assert_eq!(
            said[0],
            "a.yaml:19:5: document 2: GatewayRoute default/shop: spec.rules[1].bakends: is not known"
        );
        assert!(said[1].starts_with("a.yaml:2") && said[1].contains("document 4: "), "{said:#?}");
        let warned: Vec<String> =
            checked.warnings.iter().map(|finding| shown(&finding.to_string())).collect();
        assert_eq!(
            warned,
            [
                "a.yaml:25:3: document 3: GatewayRoute default/two: spec.rules: there is no GatewayBackend default/nobody"
            ]
        );
        assert_eq!(checked.objects, 3);
    }

    #[test]
    fn fields_lead_to_places() {
        assert_eq!(pointer("spec.rules[0].matches[12].path"), "/spec/rules/0/matches/12/path");
        assert_eq!(pointer("spec.filters.set[x-a]"), "/spec/filters/set/x-a");
        assert_eq!(pointer(""), "");
    }
}
