//! The files that are a test each.

use std::path::{Path, PathBuf};

/// The files of a folder of this package that end like this, sorted, each with its name as that of a test.
///
/// # Panics
///
/// If there are none: a test of nothing must not pass.
pub fn files(folder: &str, ending: &str) -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut files: Vec<(String, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == ending))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
        .collect();
    assert!(!files.is_empty(), "there is no .{ending} in {}", folder.display());
    files.sort();
    files
}
