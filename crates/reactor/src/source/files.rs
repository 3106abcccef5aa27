//! `file:` URLs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use watchkeeper_core::Source;
use watchkeeper_sources::files::Files;

use super::{Asked, Scheme, Settings, parameters, unescaped};

/// `file:PATH`, `file:///PATH`. What else is to be said stands behind a question mark or in `settings`:
///
/// - `as`: `documents`, or `bundles`, which makes one object of each directory;
/// - `apiVersion` and `kind`: only documents of this kind, named by namespace and name;
/// - `by`: `name`, or `path`, for documents that have no names;
/// - `poll`: how often to look, instead of being told; `rescan`: how often to look besides;
/// - `maxBytes`: how large a file may be.
pub(super) const SCHEME: Scheme = Scheme { names: &["file"], settings: SETTINGS, open };

const SETTINGS: &[&str] = &["as", "apiVersion", "kind", "by", "poll", "rescan", "maxBytes"];

fn open(asked: &Asked<'_>) -> Option<Arc<dyn Source>> {
    let rest = asked.text.split_once(':').map_or("", |(_, rest)| rest);
    let (written, query) = rest.split_once('?').unwrap_or((rest, ""));
    let parameters = parameters(query);
    let settings = Settings::read(asked, &parameters);
    let path = path(asked, written)?;
    let bundles = match settings.get("as") {
        Some(node) => node.word(&["documents", "bundles"])? == "bundles",
        None => false,
    };
    let mut files = if bundles {
        Files::bundles(path)
    } else if is_file(&path, written) {
        Files::file(path)
    } else {
        Files::directory(path)
    };
    match (settings.get("apiVersion"), settings.get("kind")) {
        (Some(api_version), Some(kind)) => files = files.kind(api_version.text()?, kind.text()?),
        (Some(node), None) | (None, Some(node)) => {
            node.wrong("apiVersion and kind go together");
            return None;
        }
        (None, None) => {}
    }
    if let Some(node) = settings.get("by")
        && node.word(&["name", "path"])? == "path"
    {
        files = files.by_path();
    }
    if let Some(node) = settings.get("poll") {
        files = files.poll(node.duration()?);
    }
    if let Some(node) = settings.get("rescan") {
        files = files.rescan(node.duration()?);
    }
    if let Some(node) = settings.get("maxBytes") {
        files = files.max_file_bytes(node.count(1, 1 << 30)?);
    }
    Some(Arc::new(files))
}

/// The path that a URL names.
pub(super) fn path(asked: &Asked<'_>, written: &str) -> Option<PathBuf> {
    let scheme = asked.text.split(':').next().unwrap_or_default();
    let path = match written.strip_prefix("//") {
        // What comes before the path is a host.
        Some(with_host) => match with_host.find('/').map(|at| with_host.split_at(at)) {
            Some(("" | "localhost", path)) => path,
            _ => {
                let here = format!("{scheme}:path or {scheme}:///path is a path on this one");
                asked.url.wrong(format!("names another machine: {here}"));
                return None;
            }
        },
        None => written,
    };
    if path.is_empty() {
        asked.url.wrong("names no file or directory");
        return None;
    }
    let path = unescaped(path);
    // What is shown to the user has no steps that lead nowhere.
    let below =
        path.strip_prefix("./").filter(|below| !below.is_empty() && !asked.base.as_os_str().is_empty());
    Some(asked.base.join(below.unwrap_or(&path)))
}

/// Whether a path is meant as that of a file: if there is nothing yet, its name tells.
fn is_file(path: &Path, written: &str) -> bool {
    match path.metadata() {
        _ if written.ends_with('/') => false,
        Ok(metadata) => metadata.is_file(),
        Err(_) => {
            path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known))
        }
    }
}
