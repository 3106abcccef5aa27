//! Files that only their owner may read, and that are there as a whole or not at all.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a file of mode 0600 in place of what has its name. Whoever looks, even after a crash, finds the old content or
/// the new.
pub(crate) fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = file.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut unfinished = std::ffi::OsString::from(".");
    unfinished.push(name);
    unfinished.push(format!(".{}", std::process::id()));
    let unfinished = directory.join(unfinished);
    let written = write_new(&unfinished, content)
        .and_then(|()| fs::rename(&unfinished, file))
        .and_then(|()| File::open(directory)?.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(&unfinished); // what matters is what went wrong before
    }
    written
}

fn write_new(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(file)?;
    // One that was left over by a crash may have had another mode.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(content)?;
    file.sync_all()
}

/// Creates a directory of mode 0700, unless it is there.
pub(crate) fn create_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}
