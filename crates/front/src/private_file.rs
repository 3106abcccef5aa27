//! Files that only their owner may read, and that are there as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// The permissions of group and others: to do anything, and to change something.
const ANYTHING: u32 = 0o077;
const WRITE: u32 = 0o022;

/// Writes a file of mode 0600 in place of what has its name. Whoever looks, even after a crash, finds the old content or
/// the new.
///
/// Nothing is written through a link: the content goes into a new file with a random name in the same directory, which is
/// then renamed. A link with the name of the file is replaced, and what it points to is left alone. What a crash leaves
/// behind is never read or written again.
pub fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = file.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let (unfinished, mut new) = loop {
        let mut random = OsString::from(".");
        random.push(name);
        random.push(format!(".{:016x}", fastrand::u64(..)));
        let path = directory.join(random);
        match create_new(&path) {
            Ok(new) => break (path, new),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    };
    let written = fill(&mut new, content)
        .and_then(|()| fs::rename(&unfinished, file))
        .and_then(|()| File::open(directory)?.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(&unfinished); // what matters is what went wrong before
    }
    written
}

/// Creates a file that is not there, and that nobody else can open from the first moment.
fn create_new(file: &Path) -> io::Result<File> {
    File::options().create_new(true).write(true).mode(0o600).open(file)
}

fn fill(file: &mut File, content: &[u8]) -> io::Result<()> {
    // The umask may have taken something away.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(content)?;
    file.sync_all()
}

/// Creates a directory of mode 0700, unless it is there.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Creates a directory for secrets, or refuses the one that is there if others can put files into it.
pub fn open_directory(directory: &Path) -> Result<(), Error> {
    create_directory(directory).map_err(|error| wrong(directory, error))?;
    let metadata = fs::metadata(directory).map_err(|error| wrong(directory, error))?;
    if ![0, own_user()].contains(&metadata.uid()) {
        let owner = metadata.uid();
        return Err(wrong(
            directory,
            format!("belongs to another user (uid {owner}), who can change the keys in it"),
        ));
    }
    refuse(directory, &metadata, WRITE, 700)
}

/// Refuses a file with a secret that others can read or change, as ssh does. Of a file that belongs to somebody else, only
/// who can change it is looked at: that it can be read was that user's choice.
///
/// A directory in which everybody can replace the file is worth a warning in the log.
pub fn check(file: &Path) -> Result<(), Error> {
    let metadata = fs::metadata(file).map_err(|error| wrong(file, error))?;
    let forbidden = if metadata.uid() == own_user() { ANYTHING } else { WRITE };
    refuse(file, &metadata, forbidden, 600)?;
    if let Some(directory) = replaceable(file) {
        tracing::warn!("{} can be replaced by everybody: run chmod o-w {0}", directory.display());
    }
    Ok(())
}

/// Refuses a file without secrets that others can change, such as a certificate that is trusted.
pub fn check_public(file: &Path) -> Result<(), Error> {
    let metadata = fs::metadata(file).map_err(|error| wrong(file, error))?;
    refuse(file, &metadata, WRITE, 600)
}

fn refuse(path: &Path, metadata: &Metadata, forbidden: u32, right: u32) -> Result<(), Error> {
    let mode = metadata.permissions().mode() & 0o7777;
    let can = match mode & forbidden {
        0 => return Ok(()),
        exposed if exposed & WRITE != 0 => "change",
        _ => "read",
    };
    Err(wrong(path, format!("others can {can} it (mode {mode:04o}): run chmod {right} {}", path.display())))
}

/// The directory of a file, if everybody can put another file in its place.
fn replaceable(file: &Path) -> Option<PathBuf> {
    const EVERYBODY_WRITES: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let directory = fs::canonicalize(file).ok()?.parent()?.to_path_buf();
    let mode = fs::metadata(&directory).ok()?.permissions().mode();
    (mode & (EVERYBODY_WRITES | STICKY) == EVERYBODY_WRITES).then_some(directory)
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn wrong(file: &Path, reason: impl ToString) -> Error {
    Error::File { file: file.into(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(file: &Path) -> u32 {
        fs::symlink_metadata(file).unwrap().permissions().mode() & 0o7777
    }

    fn names(directory: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_written_through_a_planted_link() {
        let directory = tempfile::tempdir().unwrap();
        let (file, victim) = (directory.path().join("token"), directory.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        let before = format!(".token.{}", std::process::id());
        symlink(&victim, directory.path().join(&before)).unwrap();
        symlink(&victim, &file).unwrap();
        write(&file, b"secret").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("secret", 0o600));
        assert!(!file.is_symlink());
        assert_eq!(names(directory.path()), [before.as_str(), "token", "victim"]);

        let taken = directory.path().join("taken");
        for target in [&victim, &directory.path().join("nowhere")] {
            symlink(target, &taken).unwrap();
            assert_eq!(create_new(&taken).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            fs::remove_file(&taken).unwrap();
        }
    }

    #[test]
    fn a_file_is_closed_to_others_before_anything_is_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        create_new(&file).unwrap();
        assert_eq!(mode(&file) & ANYTHING, 0);
    }

    #[test]
    fn what_a_crash_leaves_behind_is_in_nobodys_way() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        fs::write(directory.path().join(".token.0123456789abcdef"), "half").unwrap();
        for content in ["one", "two"] {
            write(&file, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        assert_eq!(names(directory.path()), [".token.0123456789abcdef", "token"]);
        write(&directory.path().join("none/token"), b"x").unwrap_err();
        write(directory.path(), b"x").unwrap_err();
        assert_eq!(names(directory.path()).len(), 2);
    }

    #[test]
    fn a_secret_is_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        fs::write(&file, "secret").unwrap();
        let check = |mode: u32| {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            check(&file).map_err(|error| error.to_string())
        };
        for fine in [0o600, 0o400, 0o700] {
            assert_eq!(check(fine), Ok(()), "{fine:o}");
        }
        for (bad, can) in
            [(0o640, "read"), (0o604, "read"), (0o620, "change"), (0o666, "change"), (0o610, "read")]
        {
            let shown = file.display();
            let wanted = format!("{shown}: others can {can} it (mode {bad:04o}): run chmod 600 {shown}");
            assert_eq!(check(bad), Err(wanted));
        }
    }

    #[test]
    fn a_directory_in_which_everybody_can_replace_files_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        write(&file, b"secret").unwrap();
        for (mode, found) in [(0o777, true), (0o1777, false), (0o775, false), (0o700, false)] {
            fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!(replaceable(&file).is_some(), found, "{mode:o}");
        }
    }
}
