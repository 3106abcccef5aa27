//! How far a migration came, in a file.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use watchkeeper_apiserver::front::private_file;

use super::definition::Definition;
use crate::failure::Failure;

/// The file in which it is noted how far a migration came; none if none is wanted.
pub(super) struct StateFile {
    path: Option<PathBuf>,
    state: State,
}

/// What is noted: of which definition, as it was when, and where the next page begins.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    definition: String,
    uid: String,
    storage_version: String,
    /// How often the definition had been changed: another version may have been stored in between.
    #[serde(default)]
    generation: i64,
    token: String,
    done: usize,
}

impl StateFile {
    /// Reads the file, if there is one. What was noted of another definition, or of this one before it was changed, counts for nothing.
    pub(super) fn open(path: Option<&Path>, definition: &Definition) -> Result<Self, Failure> {
        let fresh = State {
            definition: definition.name().to_owned(),
            uid: definition.uid().to_owned(),
            storage_version: definition.storage().to_owned(),
            generation: definition.generation(),
            ..State::default()
        };
        let noted = match path.map(fs::read) {
            None => None,
            Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => None,
            Some(read) => {
                let shown = path.map(Path::display);
                let fails = |error: &dyn std::fmt::Display| match &shown {
                    Some(shown) => Failure::input(format!("--state {shown}: {error}")),
                    None => Failure::input(error),
                };
                let text = read.map_err(|error| fails(&error))?;
                let noted: State = serde_json::from_slice(&text)
                    .map_err(|error| fails(&format!("not a file of `watchkeeper migrate`: {error}")))?;
                Some(noted)
            }
        };
        let is_same = |noted: &State| {
            (&noted.uid, &noted.storage_version, noted.generation)
                == (&fresh.uid, &fresh.storage_version, fresh.generation)
        };
        let state = noted.filter(is_same).unwrap_or(fresh);
        Ok(Self { path: path.map(Path::to_owned), state })
    }

    /// Where to go on; empty for the beginning.
    pub(super) fn token(&self) -> String {
        self.state.token.clone()
    }

    pub(super) fn done(&self) -> usize {
        self.state.done
    }

    /// Notes where the next page begins.
    pub(super) fn note(&mut self, token: &str, done: usize) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        self.state.token = token.to_owned();
        self.state.done = done;
        let failed = |error: std::io::Error| Failure::running(format!("{}: {error}", path.display()));
        let text = serde_json::to_vec(&self.state).map_err(Failure::running)?;
        // Whoever is interrupted leaves the old file or the new one.
        private_file::write(path, &text).map_err(failed)
    }

    /// Removes the file of a migration that is over.
    pub(super) fn remove(path: Option<&Path>) {
        if let Some(path) = path {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(uid: &str, generation: i64) -> Definition {
        let versions = json!([{"name": "v1", "storage": false}, {"name": "v2", "storage": true}]);
        let metadata = json!({"name": "things.example.com", "uid": uid, "generation": generation});
        Definition::of(json!({"metadata": metadata, "spec": {"versions": versions}}))
    }

    #[test]
    fn what_was_noted_counts_until_the_definition_is_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let mut file = StateFile::open(Some(&path), &definition("a", 2)).unwrap();
        file.note("next", 500).unwrap();
        for (uid, generation, done) in [("a", 2, 500), ("a", 3, 0), ("b", 2, 0)] {
            let file = StateFile::open(Some(&path), &definition(uid, generation)).unwrap();
            assert_eq!(file.done(), done, "{uid} {generation}");
        }
        // A file of a release that did not note it.
        let old = r#"{"definition":"things.example.com","uid":"a","storageVersion":"v2","token":"next","done":500}"#;
        fs::write(&path, old).unwrap();
        assert_eq!(StateFile::open(Some(&path), &definition("a", 2)).unwrap().done(), 0);
    }
}
