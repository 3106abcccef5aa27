//! The files of one directory as one object.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use watchkeeper_core::{Document, Reason};

use super::content::{self, Content};
use super::documents::{Fault, Object, Parsed};
use super::fingerprint::Signature;
use super::settings::{Settings, path_key};
use crate::print::Print;

/// The files of a directory are read when none of them has changed for this long.
pub(super) const LEFT_ALONE: Duration = Duration::from_millis(250);

/// What became of an attempt to read a bundle.
#[derive(Debug)]
pub(super) enum Bundle {
    Missing,
    Unstable,
    Read(Parsed),
}

/// Reads the files of a directory as one set: if one of them changes meanwhile, it is unstable.
pub(super) fn read(settings: &Settings, below: &Path) -> Bundle {
    let Some(before) = members(settings, below) else { return Bundle::Missing };
    if before.is_empty() {
        return Bundle::Missing;
    }
    let now = SystemTime::now();
    if before.values().flatten().any(|signature| signature.age(now).is_some_and(|age| age < LEFT_ALONE)) {
        return Bundle::Unstable;
    }
    let name = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let key = path_key(name, 1);
    let (mut data, mut binary) = (Map::new(), Map::new());
    for member in before.keys() {
        let path = below.join(member);
        let fault = |reason, said: String| {
            let detail = format!("{}: {said}", settings.shown(&path));
            Bundle::Read(Parsed {
                faults: vec![Fault { key: key.clone(), reason, detail }],
                ..Parsed::default()
            })
        };
        match content::read(&settings.root().join(&path), settings.max_file_bytes) {
            Content::Bytes(content) => match String::from_utf8(content.bytes) {
                Ok(text) => drop(data.insert(member.clone(), Value::String(text))),
                Err(error) => {
                    let text = watchkeeper_go::base64::encode(error.into_bytes());
                    binary.insert(member.clone(), Value::String(text));
                }
            },
            Content::Unreadable(why) => return fault(Reason::Unreadable, why),
            Content::TooLarge(size) => {
                return fault(Reason::TooLarge, format!("{size} bytes, more than are read"));
            }
            Content::Missing | Content::NoFile | Content::Unstable => return Bundle::Unstable,
        }
    }
    if members(settings, below).as_ref() != Some(&before) {
        return Bundle::Unstable;
    }
    let body = json!({"data": data, "binaryData": binary}).to_string().into_bytes();
    let print = Print::of(&body);
    let object = Object { print, document: Document::named(key, print.version(), body) };
    Bundle::Read(Parsed { objects: vec![object], faults: Vec::new() })
}

/// The files in a directory, by name; without a signature if there is none to be had.
fn members(settings: &Settings, below: &Path) -> Option<BTreeMap<String, Option<Signature>>> {
    let directory = settings.root().join(below);
    let mut members = BTreeMap::new();
    for entry in std::fs::read_dir(&directory).ok()?.flatten() {
        let name = entry.file_name();
        if !settings.wants(&below.join(&name)) {
            continue;
        }
        let metadata = std::fs::metadata(entry.path());
        if metadata.as_ref().is_ok_and(|metadata| !metadata.is_file()) {
            continue;
        }
        members.insert(
            name.to_string_lossy().into_owned(),
            metadata.ok().map(|metadata| Signature::of(&metadata)),
        );
    }
    Some(members)
}
