use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use watchkeeper_package::Settings;
use watchkeeper_schema::yaml;

use crate::cargo::Package;
use crate::failure::Failure;

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

/// The objects of files and of the files in folders, in the order of their names.
pub(crate) fn given_samples(paths: &[PathBuf]) -> Result<Vec<Value>, Failure> {
    let fails = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::input(format!("--samples {}: {error}", path.display()))
    };
    let mut found = Vec::new();
    for path in paths {
        let mut files = vec![path.clone()];
        if path.is_dir() {
            let entries = fs::read_dir(path).map_err(|error| fails(path, &error))?;
            files = entries
                .map(|entry| Ok(entry?.path()))
                .collect::<io::Result<_>>()
                .map_err(|error| fails(path, &error))?;
            files.sort();
        }
        for file in files {
            let text = fs::read_to_string(&file).map_err(|error| fails(&file, &error))?;
            for document in yaml::documents(&text) {
                let value =
                    yaml::decode(document.text.as_bytes()).map_err(|error| fails(&file, &error))?.value;
                if !value.is_object() {
                    return Err(fails(&file, &"there is something in it that is no object"));
                }
                found.push(value);
            }
        }
    }
    Ok(found)
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
