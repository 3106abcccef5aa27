//! Images as files: a directory of the OCI layout, an archive of it, or an archive for Docker.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::Error;
use crate::image::Image;
use crate::tar::{self, Entry};

/// The files of the OCI layout, by their paths.
fn layout(image: &Image, name: Option<&str>) -> Vec<(String, Vec<u8>)> {
    let mut root = image.root().descriptor();
    if image.index.is_none() {
        let platform = &image.variants[0].platform;
        root["platform"] = json!({"os": platform.os, "architecture": platform.architecture});
    }
    if let Some(name) = name {
        root["annotations"] = json!({"org.opencontainers.image.ref.name": name});
    }
    let mut manifests = vec![root];
    if let Some(referrer) = &image.referrer {
        let mut descriptor = referrer.manifest.descriptor();
        descriptor["artifactType"] = json!("application/vnd.cyclonedx+json");
        manifests.push(descriptor);
    }
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests});
    let blobs =
        image.blobs().into_iter().map(|blob| (format!("blobs/sha256/{}", blob.hex()), blob.bytes.to_vec()));
    let mut files: Vec<(String, Vec<u8>)> = blobs.collect();
    files.push(("index.json".to_owned(), index.to_string().into_bytes()));
    files.push(("oci-layout".to_owned(), json!({"imageLayoutVersion": "1.0.0"}).to_string().into_bytes()));
    files.sort();
    files
}

/// Writes a directory of the OCI layout, which must not be there yet. `name` is what the image is called in it.
///
/// # Errors
///
/// If the directory is there, or cannot be written; then nothing of it is left.
pub fn write_layout(image: &Image, name: Option<&str>, directory: &Path) -> Result<(), Error> {
    let fails = |error: io::Error| Error::File { path: directory.display().to_string(), error };
    if directory.symlink_metadata().is_ok() {
        return Err(exists(directory));
    }
    let draft = beside(directory);
    let write = || -> io::Result<()> {
        fs::create_dir_all(draft.join("blobs/sha256"))?;
        for (path, bytes) in layout(image, name) {
            fs::write(draft.join(path), bytes)?;
        }
        fs::rename(&draft, directory)
    };
    write().map_err(|error| {
        let _ = fs::remove_dir_all(&draft);
        fails(error)
    })
}

/// Writes an archive of the OCI layout.
///
/// # Errors
///
/// If the file is there, or cannot be written.
pub fn write_oci_archive(image: &Image, name: Option<&str>, time: u64, file: &Path) -> Result<(), Error> {
    write_archive(&layout(image, name), time, file)
}

/// Writes an archive that `docker load` takes. Docker knows one platform an archive.
///
/// # Errors
///
/// If the image is for several platforms, or the file is there or cannot be written.
pub fn write_docker_archive(image: &Image, name: &str, time: u64, file: &Path) -> Result<(), Error> {
    let [variant] = image.variants.as_slice() else {
        return Err(Error::Input(
            "an archive for Docker holds one platform: write oci-archive:FILE, or give one program"
                .to_owned(),
        ));
    };
    let config = format!("{}.json", variant.config.hex());
    let layer = |unpacked: &str| format!("{}/layer.tar", unpacked.trim_start_matches("sha256:"));
    let layers: Vec<String> = variant.layers.iter().map(|known| layer(&known.unpacked)).collect();
    let manifest: Value = json!([{"Config": config, "RepoTags": [name], "Layers": layers}]);
    let mut files = vec![
        (config, variant.config.bytes.to_vec()),
        ("manifest.json".to_owned(), manifest.to_string().into_bytes()),
    ];
    files.extend(variant.layers.iter().map(|known| (layer(&known.unpacked), known.archive.clone())));
    files.sort();
    write_archive(&files, time, file)
}

fn write_archive(files: &[(String, Vec<u8>)], time: u64, file: &Path) -> Result<(), Error> {
    if file.symlink_metadata().is_ok() {
        return Err(exists(file));
    }
    let entries: Vec<Entry<'_>> =
        files.iter().map(|(path, bytes)| Entry { path, mode: 0o644, bytes }).collect();
    let archive = tar::write(&entries, time).map_err(Error::Input)?;
    let draft = beside(file);
    let written = fs::write(&draft, archive).and_then(|()| fs::rename(&draft, file));
    written.map_err(|error| {
        let _ = fs::remove_file(&draft);
        Error::File { path: file.display().to_string(), error }
    })
}

fn exists(path: &Path) -> Error {
    Error::Input(format!("{} exists already: remove it, or choose another place", path.display()))
}

/// Where something is written until it is complete.
fn beside(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    name.into()
}
