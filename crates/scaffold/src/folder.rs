use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::project::File;

/// Writes a project into a new folder, all of it or nothing: the files are written beside it, and the folder gets its name when they are
/// complete. Returns the folder.
///
/// # Errors
///
/// If there is something of that name already, or a file cannot be written.
pub fn write(folder: &Path, files: &[File]) -> Result<(), Error> {
    if folder.symlink_metadata().is_ok() {
        return Err(Error::Exists(folder.to_owned()));
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| Error::Folder { path, error }
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let draft = Draft(parent.join(format!(".{name}.new-{}", std::process::id())));
    fs::create_dir(&draft.0).map_err(failed(parent))?;
    for file in files {
        let path = draft.0.join(&file.path);
        draft.write(&path, &file.text).map_err(failed(&path))?;
    }
    // An empty folder that came up meanwhile would be replaced; one with files in it is left alone.
    fs::rename(&draft.0, folder).map_err(failed(folder))
}

/// The folder until it is complete. Removed if it never is.
struct Draft(PathBuf);

impl Draft {
    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(&self.0))?;
        fs::File::create_new(path)?.write_all(text.as_bytes())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> File {
        File { path: path.into(), text: "text".into() }
    }

    #[test]
    fn a_folder_is_written_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("shop");
        let left = || fs::read_dir(place.path()).unwrap().count();
        assert!(write(&folder, &[file("a/b"), file("a/b/c")]).is_err());
        assert_eq!(left(), 0);
        write(&folder, &[file("a/b"), file("c")]).unwrap();
        assert_eq!(fs::read_to_string(folder.join("a/b")).unwrap(), "text");
        assert_eq!(left(), 1);
        let error = write(&folder, &[file("a")]).unwrap_err().to_string();
        assert!(error.contains("exists already"), "{error}");
        assert!(!folder.join("a").is_file());
    }
}
