//! Whether git tracks something, from what git keeps on disk. No program is run: the settings of a repository that came from
//! a stranger can name programs.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The first file at or below a folder that a repository around it tracks.
pub(super) fn tracked(folder: &Path) -> io::Result<Option<String>> {
    let folder = fs::canonicalize(folder)?;
    for root in folder.ancestors() {
        let Some(directory) = git_directory(root) else { continue };
        let Ok(wanted) = folder.strip_prefix(root) else { continue };
        let wanted = wanted.as_os_str().as_bytes();
        let is_within = |name: &[u8]| match name.strip_prefix(wanted) {
            Some(rest) => wanted.is_empty() || rest.is_empty() || rest[0] == b'/',
            None => false,
        };
        for file in index_files(&directory) {
            let index = fs::read(&file).unwrap_or_default();
            // The names of objects have 20 bytes, or 32 in a repository with SHA-256; the wrong one is noticed.
            match [20, 32].into_iter().find_map(|size| find(&index, size, is_within)) {
                Some(Some(name)) => return Ok(Some(String::from_utf8_lossy(&name).into_owned())),
                Some(None) => {}
                None => tracing::warn!(
                    "{} cannot be read, so that it is not known whether git tracks {}",
                    file.display(),
                    folder.display()
                ),
            }
        }
    }
    Ok(None)
}

/// Where the repository of a directory is: `.git` in it, or what a file of that name says, as in worktrees and submodules.
fn git_directory(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = fs::read_to_string(&git).ok()?;
    Some(root.join(text.strip_prefix("gitdir:")?.trim()))
}

/// The index, and what it may have been split into.
fn index_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_index = |name: &str| name == "index" || name.starts_with("sharedindex.");
    let indexes = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_index));
    indexes.map(|entry| entry.path()).filter(|file| file.is_file()).collect()
}

/// The first wanted name in an index of version 2, 3 or 4. `None` if it is no such index, or the names of its objects are
/// of another size.
fn find(index: &[u8], object_size: usize, is_wanted: impl Fn(&[u8]) -> bool) -> Option<Option<Vec<u8>>> {
    /// Times, device, inode, mode, owner and size of the file.
    const STAT: usize = 40;
    const EXTENDED: u16 = 0x4000;
    const LENGTH: u16 = 0x0fff;
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let version = number(4).filter(|version| index.starts_with(b"DIRC") && (2..=4).contains(version))?;
    let mut at = 12;
    let mut name = Vec::new();
    for _ in 0..number(8)? {
        let flags = at + STAT + object_size;
        let mut text = flags + 2;
        let flags = u16::from_be_bytes(index.get(flags..text)?.try_into().ok()?);
        if flags & EXTENDED != 0 {
            text += 2;
        }
        if version == 4 {
            let (dropped, next) = variable(index, text)?;
            name.truncate(name.len().checked_sub(dropped)?);
            text = next;
        } else {
            name.clear();
        }
        let end = text + index.get(text..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&index[text..end]);
        if usize::from(flags & LENGTH) != name.len().min(LENGTH.into()) {
            return None;
        }
        if is_wanted(&name) {
            return Some(Some(name));
        }
        // Before version 4, an entry is filled up to eight bytes.
        at = if version == 4 { end + 1 } else { at + ((end - at) / 8 + 1) * 8 };
    }
    Some(None)
}

/// A number of variable length, and where it ends.
fn variable(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.current_dir(directory)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = git.args(arguments).output().expect("git is installed");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// A repository with a few files, some of them in `.watchkeeper`.
    fn repository(options: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        git(path, &[&["init", "--quiet"], options].concat());
        let folders = [
            "inner/.watchkeeper/data",
            "inner/.watchkeeper-not",
            "many",
            "other/.watchkeeper",
            "z/.watchkeeper",
        ];
        for folder in folders {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        // What comes behind a name of more than 127 letters has to drop a number of two bytes of it.
        let long = format!("many/{}", "x".repeat(200));
        let begin = ["a", "inner/.watchkeeper-not/x", "inner/.watchkeeper/data/token", "inner/b"];
        let files = begin.into_iter().chain([&*long, "z/.watchkeeper/last"]);
        for file in files {
            fs::write(path.join(file), file).unwrap();
        }
        git(path, &["add", "--force", "--", "."]);
        directory
    }

    fn found(folder: &Path) -> Option<String> {
        tracked(folder).unwrap()
    }

    #[test]
    fn a_tracked_file_is_found_in_every_form_of_the_index() {
        let repository = repository(&[]);
        let path = repository.path();
        let folder = path.join("inner/.watchkeeper");
        let token = Some("inner/.watchkeeper/data/token".to_owned());
        for version in ["2", "4"] {
            git(path, &["update-index", "--index-version", version]);
            assert_eq!(found(&folder), token, "version {version}");
            assert_eq!(found(&path.join("other/.watchkeeper")), None);
            assert_eq!(found(&path.join("z/.watchkeeper")).as_deref(), Some("z/.watchkeeper/last"));
            assert_eq!(found(&path.join("inner")).as_deref(), Some("inner/.watchkeeper-not/x"));
        }
        // An entry with more flags makes it version 3.
        git(path, &["update-index", "--index-version", "2"]);
        git(path, &["update-index", "--skip-worktree", "a"]);
        assert_eq!(found(&folder), token);
        git(path, &["update-index", "--split-index"]);
        assert_eq!(found(&folder), token);
        git(path, &["rm", "--quiet", "-r", "--cached", "inner/.watchkeeper"]);
        git(path, &["update-index", "--no-split-index"]);
        for entry in fs::read_dir(path.join(".git")).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("sharedindex") {
                fs::remove_file(entry.path()).unwrap(); // git does so after a while
            }
        }
        assert_eq!(found(&folder), None);
    }

    #[test]
    fn worktrees_and_other_hashes_are_understood() {
        let sha256 = repository(&["--object-format=sha256"]);
        let folder = sha256.path().join("inner/.watchkeeper");
        assert_eq!(found(&folder).as_deref(), Some("inner/.watchkeeper/data/token"));

        let first = repository(&[]);
        let me = ["-c", "user.name=a", "-c", "user.email=a@b"];
        git(first.path(), &[&me[..], &["commit", "--quiet", "-m", "x"]].concat());
        git(first.path(), &["worktree", "add", "--quiet", "second"]);
        let folder = first.path().join("second/inner/.watchkeeper");
        assert_eq!(found(&folder).as_deref(), Some("inner/.watchkeeper/data/token"));
    }

    #[test]
    fn where_there_is_no_repository_or_no_index_nothing_is_tracked() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join(".watchkeeper");
        fs::create_dir(&folder).unwrap();
        assert_eq!(found(&folder), None);
        git(directory.path(), &["init", "--quiet"]);
        assert_eq!(found(&folder), None);
        for rubbish in [&b""[..], b"DIRC", b"DIRC\0\0\0\x09\0\0\0\x01", b"DIRC\0\0\0\x04\xff\xff\xff\xff\xff"]
        {
            fs::write(directory.path().join(".git/index"), rubbish).unwrap();
            assert_eq!(found(&folder), None);
        }
    }
}
