//! Writes the status of an object to a file outside of what is watched.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use watchkeeper_core::{Error, Key, ObjectStatus};

use super::bundle::{self, Bundle};
use super::content::{self, Content};
use super::documents::{self, Parsed};
use super::settings::{Form, Settings};

/// Writes a status, if the object is still in the state that the status is about. Reads its file for that.
pub(super) async fn write(settings: Arc<Settings>, status: ObjectStatus) -> Result<(), Error> {
    let writing = tokio::task::spawn_blocking(move || write_now(&settings, &status));
    writing.await.unwrap_or_else(|_| {
        Err(Error::Unavailable { answered: false, reason: "the status was not written to the end".into() })
    })
}

fn write_now(settings: &Settings, status: &ObjectStatus) -> Result<(), Error> {
    let ObjectStatus { key, version, json, .. } = status;
    let name = &settings.name;
    let Some(directory) = &settings.status_directory else {
        let advice = "say where with status_directory";
        return Err(Error::Fatal(format!("{name}: the status of {key} cannot be written: {advice}")));
    };
    let path = directory.join(file_name(key));
    if is_read_as_object(settings, directory, &path) {
        let advice = "name one outside, or one whose name begins with a dot";
        return Err(Error::Fatal(format!(
            "{name}: statuses in {} would be read as objects: {advice}",
            directory.display()
        )));
    }
    match current(settings, key) {
        None => return Err(Error::Missing(format!("{name}: {key} is gone"))),
        Some(found) if found == *version => {}
        Some(_) => return Err(Error::Expired(format!("{name}: {key} has changed since {version}"))),
    }
    if fs::read(&path).is_ok_and(|before| before == *json) {
        return Ok(());
    }
    replace(&path, json).map_err(|error| {
        let reason = format!("{name}: the status of {key} in {}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::Denied(reason),
            _ => Error::Unavailable { answered: false, reason },
        }
    })
}

/// `shop/cart.json`. No name leads out of the directory, and no two objects have the same one.
fn file_name(key: &Key) -> PathBuf {
    let escaped = |text: &str| {
        let text = text.replace('%', "%25").replace('/', "%2F");
        match text.strip_prefix('.') {
            Some(rest) => format!("%2E{rest}"),
            None => text,
        }
    };
    let file = format!("{}.json", escaped(key.name()));
    key.namespace().map(escaped).map_or_else(PathBuf::new, PathBuf::from).join(file)
}

/// Whether a file in this directory would be an object of the source itself.
fn is_read_as_object(settings: &Settings, directory: &Path, file: &Path) -> bool {
    // The directory may not be there yet.
    let real = |path: &Path| fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    let (Ok(root), Ok(real_directory)) = (real(settings.root()), real(directory)) else { return false };
    let file =
        file.strip_prefix(directory).map_or_else(|_| file.to_path_buf(), |file| real_directory.join(file));
    file.strip_prefix(root).is_ok_and(|below| settings.wants(below))
}

/// The version of an object, as the files say now: of several files that have it, the first one's. An object whose file cannot be read at the
/// moment has none that any status could be about.
fn current(settings: &Settings, key: &Key) -> Option<watchkeeper_core::Version> {
    let mut holders = settings.shared.lock().held.holders(key);
    holders.sort();
    let mut there = false;
    for holder in &holders {
        let Some(parsed) = read(settings, holder) else { continue };
        there |= !parsed.faults.is_empty();
        if let Some(object) = parsed.objects.iter().find(|object| object.document.header.key == *key) {
            return Some(object.document.header.version.clone());
        }
    }
    there.then(|| watchkeeper_core::Version::from("unreadable"))
}

fn read(settings: &Settings, holder: &Path) -> Option<Parsed> {
    let unreadable = || Parsed {
        faults: vec![documents::Fault {
            key: super::settings::path_key(holder, 1),
            reason: watchkeeper_core::Reason::Unreadable,
            detail: String::new(),
        }],
        ..Parsed::default()
    };
    if settings.form == Form::Bundles {
        return match bundle::read(settings, holder.parent().unwrap_or(Path::new(""))) {
            Bundle::Missing => None,
            Bundle::Unstable => Some(unreadable()),
            Bundle::Read(parsed) => Some(parsed),
        };
    }
    match content::read(&settings.root().join(holder), settings.max_file_bytes) {
        Content::Missing | Content::NoFile => None,
        Content::Bytes(content) => Some(documents::parse(settings, holder, &content.bytes)),
        Content::Unreadable(_) | Content::TooLarge(_) | Content::Unstable => Some(unreadable()),
    }
}

/// Exchanges a file for another one: who reads it sees the old one or the new one.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let new = directory.join(format!(".{}-{number}.tmp", std::process::id()));
    let written = fs::File::create_new(&new)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_directory_and_no_two_objects_share_a_file() {
        for (key, expected) in [
            (Key::new(Some("shop"), "cart"), "shop/cart.json"),
            (Key::new(None, "shop/cart"), "shop%2Fcart.json"),
            (Key::new(Some(".."), "../../etc/passwd"), "%2E./%2E.%2F..%2Fetc%2Fpasswd.json"),
            (Key::new(None, "100%"), "100%25.json"),
        ] {
            assert_eq!(file_name(&key), Path::new(expected));
        }
    }
}
