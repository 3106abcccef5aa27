use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use watchkeeper_core::Key;
use watchkeeper_front::private_file;

use crate::compile::{Place, REMEMBERED, source_number};
use crate::object::Input;

/// How long changes are collected before the state is written.
const DELAY: Duration = Duration::from_secs(2);
const FILE: &str = "gateway.json";

/// The state directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", directory.display())]
pub struct StateError {
    /// The directory.
    pub directory: PathBuf,
    /// Why.
    pub reason: String,
}

/// The last good form of all objects, on disk. It may hold secrets: only its owner can read it.
pub(super) struct StateFile {
    directory: PathBuf,
    /// Since when it is not what is served.
    changed: Option<Instant>,
    writing: Option<JoinHandle<()>>,
}

impl StateFile {
    pub(super) fn open(directory: PathBuf) -> Result<Self, StateError> {
        let made = fs::create_dir_all(&directory);
        made.map_err(|error| StateError { directory: directory.clone(), reason: error.to_string() })?;
        Ok(Self { directory, changed: None, writing: None })
    }

    /// What was written last, with its places; those of sources that are not named any more are left out. And the numbers of the sources whose
    /// objects these are, also of those that had none.
    pub(super) fn load(&self, names: &[String]) -> (Vec<(Place, Input)>, Vec<usize>) {
        let file = self.directory.join(FILE);
        let state = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<Value>(&bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Default::default(),
            Err(error) => {
                tracing::warn!("{}: {error}", file.display());
                return Default::default();
            }
        };
        let Ok(Value::Object(state)) = state else {
            tracing::warn!("{}: is not the state of a gateway, and is ignored", file.display());
            return Default::default();
        };
        let known = state.get("sources").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let known =
            (0..names.len()).filter(|at| known.iter().any(|name| name == names[*at].as_str())).collect();
        let read = |object: &Value| {
            let number = names.iter().position(|name| object["source"].as_str() == Some(name))?;
            let key = object["key"].as_array()?;
            let key = Key::new(key.first()?.as_str(), key.get(1)?.as_str()?);
            let input = Input::read(object["object"].clone()).ok()??;
            Some(((REMEMBERED + number, key), input))
        };
        let objects = state.get("objects").and_then(Value::as_array);
        (objects.into_iter().flatten().filter_map(read).collect(), known)
    }

    pub(super) fn changed(&mut self) {
        self.changed.get_or_insert_with(Instant::now);
    }

    /// Whether it is time to write.
    pub(super) fn is_due(&self) -> bool {
        let free = self.writing.as_ref().is_none_or(JoinHandle::is_finished);
        free && self.changed.is_some_and(|since| since.elapsed() >= DELAY)
    }

    /// Writes in the background.
    pub(super) fn write(&mut self, objects: Vec<(Place, Input)>, names: &[String]) {
        self.changed = None;
        let (directory, names) = (self.directory.clone(), names.to_vec());
        self.writing = Some(tokio::task::spawn_blocking(move || {
            if let Err(reason) = write(&directory, &objects, &names) {
                tracing::error!("{}: the state is not written: {reason}", directory.display());
            }
        }));
    }

    /// Waits for what is being written.
    pub(super) async fn finish(&mut self) {
        if let Some(writing) = self.writing.take() {
            let _ = writing.await; // what failed was said
        }
    }
}

fn write(directory: &Path, objects: &[(Place, Input)], names: &[String]) -> Result<(), String> {
    let mut objects: Vec<(&Place, &Input)> = objects.iter().map(|(place, input)| (place, input)).collect();
    objects.sort_by_key(|(place, _)| *place);
    let objects = objects.iter().filter_map(|(place, input)| {
        let (source, key) = (names.get(source_number(place))?, &place.1);
        Some(json!({"source": source, "key": [key.namespace(), key.name()], "object": input.json.read()}))
    });
    let state = json!({"sources": names, "objects": objects.collect::<Vec<_>>()}).to_string();
    private_file::write(&directory.join(FILE), state.as_bytes()).map_err(|error| error.to_string())
}
