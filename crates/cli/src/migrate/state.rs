//! How far a migration came, in a file.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::definition::Definition;
use crate::failure::Failure;

/// The file in which it is noted how far a migration came; none if none is wanted.
pub(super) struct StateFile {
    path: Option<PathBuf>,
    state: State,
}

/// What is noted: of which definition and storage version, and where the next page begins.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    definition: String,
    uid: String,
    storage_version: String,
    token: String,
    done: usize,
}

impl StateFile {
    /// Reads the file, if there is one. What was noted of another definition or storage version counts for nothing.
    pub(super) fn open(path: Option<&Path>, definition: &Definition) -> Result<Self, Failure> {
        let fresh = State {
            definition: definition.name().to_owned(),
            uid: definition.uid().to_owned(),
            storage_version: definition.storage().to_owned(),
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
        let is_same =
            |noted: &State| noted.uid == fresh.uid && noted.storage_version == fresh.storage_version;
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
        let next = path.with_extension("new");
        fs::write(&next, text).and_then(|()| fs::rename(&next, path)).map_err(failed)
    }

    /// Removes the file of a migration that is over.
    pub(super) fn remove(path: Option<&Path>) {
        if let Some(path) = path {
            let _ = fs::remove_file(path);
        }
    }
}
