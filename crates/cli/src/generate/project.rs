use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use watchkeeper_package::Settings;
use watchkeeper_schema::yaml;

use crate::cargo::Package;

/// What a crate says that its program does not know. `[package.metadata.watchkeeper]` has `image`, `namespace` and `watch-namespaces`.
pub(crate) fn settings(package: &Package) -> Settings {
    let mut settings = Settings::default();
    settings.image = package.text("/metadata/watchkeeper/image");
    settings.namespace = package.text("/metadata/watchkeeper/namespace");
    settings.version = package.version();
    settings.about = package.text("/description");
    settings.homepage = package.text("/homepage");
    settings.repository = package.text("/repository");
    settings.license = package.text("/license");
    settings.authors = package.list("/authors");
    settings.keywords = package.list("/keywords");
    settings.watch_namespaces = package.list("/metadata/watchkeeper/watch-namespaces");
    settings.samples = samples(&package.folder().join("samples"));
    settings
}

/// The objects of the files in a folder, in the order of the files' names. What cannot be read is no sample.
fn samples(folder: &Path) -> Vec<Value> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    let objects = |text: String| -> Vec<Value> {
        let decoded = yaml::documents(&text).filter_map(|part| yaml::decode(part.text.as_bytes()).ok());
        decoded.map(|decoded| decoded.value).filter(Value::is_object).collect()
    };
    texts.flat_map(objects).collect()
}
