use std::collections::{BTreeMap, BTreeSet};

use crate::file::{File, Keep};
use crate::parts::updated;

/// A difference between the rendered files and a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference<'a> {
    /// A file is missing.
    Missing(&'a File),
    /// A generated file differs.
    Changed(&'a File),
    /// A file of the user in which values are outdated, with the new values.
    Outdated(File),
    /// A file of the user in which this value is outdated; only the user can change it.
    Unwritable(&'a File, String),
    /// A file in the paths of a renderer that it does not write any more.
    Stale(String),
}

impl Difference<'_> {
    /// The file.
    pub fn path(&self) -> &str {
        match self {
            Self::Missing(file) | Self::Changed(file) | Self::Unwritable(file, _) => &file.path,
            Self::Outdated(file) => &file.path,
            Self::Stale(path) => path,
        }
    }
}

/// Compares what was rendered with what is there, by path. `owns` are the paths of the renderers: a file at one of them, or below one that
/// ends with `/`, that was not rendered is stale. The user's own files are never stale, and never changed but for the
/// [values that follow the program](Keep::Parts).
pub fn plan<'a>(
    rendered: &'a [File],
    there: &BTreeMap<String, Vec<u8>>,
    owns: impl IntoIterator<Item = &'a str>,
) -> Vec<Difference<'a>> {
    let mut found = Vec::new();
    for file in rendered {
        match there.get(&file.path) {
            None => found.push(Difference::Missing(file)),
            Some(text) if file.keep == Keep::Generated && *text != file.text.as_bytes() => {
                found.push(Difference::Changed(file));
            }
            Some(text) => {
                let Keep::Parts(keys) = file.keep else { continue };
                match updated(&String::from_utf8_lossy(text), &file.text, keys) {
                    Ok(None) => {}
                    Ok(Some(text)) => found.push(Difference::Outdated(File { text, ..file.clone() })),
                    Err(key) => found.push(Difference::Unwritable(file, key)),
                }
            }
        }
    }
    let known: BTreeSet<&str> = rendered.iter().map(|file| file.path.as_str()).collect();
    let owns: Vec<&str> = owns.into_iter().collect();
    let is_owned = |path: &str| {
        owns.iter().any(|owned| if owned.ends_with('/') { path.starts_with(owned) } else { path == *owned })
    };
    let stale = there.keys().filter(|path| is_owned(path) && !known.contains(path.as_str()));
    found.extend(stale.map(|path| Difference::Stale(path.clone())));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_found_and_what_is_the_users_is_left_alone() {
        let rendered = [
            File::generated("crds/a.yaml", "new"),
            File::generated("crds/b.yaml", "same"),
            File::generated("rbac.yaml", "missing"),
            File::once("chart/values.yaml", "first"),
            File::parts("chart/Chart.yaml", "appVersion: 2.0.0\n", &[&["appVersion"]]),
            File::parts("chart/Flow.yaml", "appVersion: 2.0.0\n", &[&["appVersion"]]),
        ];
        let there = [
            ("crds/a.yaml", "old"),
            ("crds/b.yaml", "same"),
            ("crds/gone.yaml", "x"),
            ("chart/values.yaml", "mine"),
            ("chart/Chart.yaml", "appVersion: 1.0.0\nname: mine\n"),
            ("chart/Flow.yaml", "{appVersion: 1.0.0}\n"),
            ("notes.md", "mine"),
        ];
        let there = there.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into();
        let plan = plan(&rendered, &there, ["crds/", "rbac.yaml"]);
        let plan: Vec<String> = plan
            .iter()
            .map(|difference| match difference {
                Difference::Missing(file) => format!("missing {}", file.path),
                Difference::Changed(file) => format!("changed {}", file.path),
                Difference::Outdated(file) => format!("outdated {}: {}", file.path, file.text.trim()),
                Difference::Unwritable(file, key) => format!("unwritable {}: {key}", file.path),
                Difference::Stale(path) => format!("stale {path}"),
            })
            .collect();
        assert_eq!(
            plan,
            [
                "changed crds/a.yaml",
                "missing rbac.yaml",
                "outdated chart/Chart.yaml: appVersion: 2.0.0\nname: mine",
                "unwritable chart/Flow.yaml: appVersion",
                "stale crds/gone.yaml",
            ]
        );
    }
}
