use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use watchkeeper_package::Settings;
use watchkeeper_schema::yaml;

use crate::failure::Failure;

/// The crate in this folder, as far as Cargo knows it.
pub(crate) struct Project {
    package: Value,
    folder: PathBuf,
}

impl Project {
    /// Asks Cargo about the crate in this folder.
    pub(crate) fn here() -> Result<Self, Failure> {
        let none = || {
            Failure::input(
                "there is no crate in this folder: go into that of an operator, or say --description or --binary",
            )
        };
        let manifest = fs::canonicalize("Cargo.toml").map_err(|_| none())?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output().map_err(|error| Failure::input(format!("cargo metadata: {error}")))?;
        if !output.status.success() {
            return Err(Failure::input(format!("cargo metadata: {}", output.status)));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| Failure::input(format!("cargo metadata: {error}")))?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let is_it = |package: &&Value| package["manifest_path"].as_str().map(Path::new) == Some(&manifest);
        let package = packages.into_iter().find(is_it).cloned().ok_or_else(none)?;
        let folder = manifest.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { package, folder })
    }

    /// What the crate says that its program does not know. `[package.metadata.watchkeeper]` has `image` and `namespace`.
    pub(crate) fn settings(self) -> Settings {
        let text = |pointer: &str| {
            self.package
                .pointer(pointer)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let list = |pointer: &str| -> Vec<String> {
            let items = self.package.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
        };
        let mut settings = Settings::default();
        settings.image = text("/metadata/watchkeeper/image");
        settings.namespace = text("/metadata/watchkeeper/namespace");
        settings.version = text("/version");
        settings.about = text("/description");
        settings.homepage = text("/homepage");
        settings.repository = text("/repository");
        settings.license = text("/license");
        settings.authors = list("/authors");
        settings.keywords = list("/keywords");
        settings.samples = samples(&self.folder.join("samples"));
        settings
    }
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
