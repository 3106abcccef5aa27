use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use watchkeeper_package::Difference;

use crate::failure::Failure;

/// The folder of the output.
pub(crate) struct Folder<'a>(&'a Path);

impl<'a> Folder<'a> {
    pub(crate) fn new(path: &'a Path) -> Self {
        Self(path)
    }

    /// All files in it, by their paths from here with `/`. Links are not followed.
    pub(crate) fn read(&self) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
        let mut files = BTreeMap::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let here = self.0.join(&folder);
            let entries = match fs::read_dir(&here) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound && folder.as_os_str().is_empty() => {
                    break;
                }
                Err(error) => return Err(Failure::input(format!("{}: {error}", here.display()))),
            };
            for entry in entries {
                let fails = |error: io::Error| Failure::running(format!("{}: {error}", here.display()));
                let entry = entry.map_err(fails)?;
                let path = folder.join(entry.file_name());
                let kind = entry.file_type().map_err(fails)?;
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    let text = fs::read(self.0.join(&path)).map_err(fails)?;
                    files.insert(path.to_string_lossy().replace('\\', "/"), text);
                }
            }
        }
        Ok(files)
    }

    /// Writes what is missing or differs, and removes what is stale. A value that the user has to change fails, after all else was done.
    pub(crate) fn apply(&self, plan: &[Difference<'_>]) -> Result<(), Failure> {
        let is_last = |difference: &&Difference<'_>| matches!(difference, Difference::Unwritable(..));
        let order = plan.iter().filter(|one| !is_last(one)).chain(plan.iter().filter(is_last));
        for difference in order {
            let path = self.0.join(difference.path());
            let done = match difference {
                Difference::Missing(file) | Difference::Changed(file) => write(&path, &file.text),
                Difference::Outdated(file) => write(&path, &file.text),
                Difference::Unwritable(_, key) => {
                    let why = format!("{key} is outdated, and has no line of its own: change it by hand");
                    Err(io::Error::other(why))
                }
                Difference::Stale(_) => fs::remove_file(&path),
            };
            done.map_err(|error| Failure::running(format!("{}: {error}", path.display())))?;
        }
        Ok(())
    }
}

/// Replaces a file in one step.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    fs::write(&draft, text)?;
    fs::rename(&draft, path)
}
