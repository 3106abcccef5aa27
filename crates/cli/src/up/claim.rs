//! Makes sure that the folder of `up` is this user's and nobody else's.
//!
//! It holds the keys of a certificate authority and the token of an administrator, and it lies in the middle of somebody's
//! work, which may have come from a stranger: a folder that came with it is not used.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use super::git_index;
use crate::failure::Failure;

/// What `up` keeps in the folder.
const KEPT: [&str; 4] = [".gitignore", "data", "kubeconfig", "webapp.yaml"];

const ELSE: &str = "or name another directory with --data-dir";

/// Makes the folder, closed to other users, or takes the one that is there. Refuses a link, a folder of another user, one
/// that others can write to, one that git tracks, and links among the files that `up` keeps there. A folder that others can
/// look into, as earlier versions made it, is closed with a warning.
pub(super) fn claim(folder: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::running(format!("{}: {error}", folder.display()));
    let metadata = match fs::symlink_metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = folder.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            return DirBuilder::new().mode(0o700).create(folder).map_err(failed);
        }
        Err(error) => return Err(failed(error)),
    };
    let shown = folder.display();
    if metadata.is_symlink() {
        return Err(refused(folder, &format!("is a symbolic link: remove it, {ELSE}")));
    }
    if !metadata.is_dir() {
        return Err(refused(folder, &format!("is not a directory: remove it, {ELSE}")));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let owner = metadata.uid();
        return Err(refused(folder, &format!("belongs to another user (uid {owner}): remove it, {ELSE}")));
    }
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o022 != 0 {
        let advice = format!("if all in it is yours, run chmod 700 {shown}, {ELSE}");
        return Err(refused(folder, &format!("others can write to it (mode {mode:04o}): {advice}")));
    }
    if let Some(file) = git_index::tracked(folder).map_err(failed)? {
        let why = format!("is tracked by git ({file}), and whoever committed it may know the keys in it");
        return Err(refused(folder, &format!("{why}: run git rm -r -f {shown}, {ELSE}")));
    }
    for name in KEPT {
        refuse_links(&folder.join(name))?;
    }
    if mode & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(failed)?;
        tracing::warn!(
            "{shown} could be looked into by others (mode {mode:04o}), and is now closed to them (0700)"
        );
    }
    Ok(())
}

/// Refuses a path that is a link, or has one in it.
fn refuse_links(path: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::running(format!("{}: {error}", path.display()));
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if metadata.is_symlink() {
        return Err(refused(
            path,
            "is a symbolic link, and nothing is read or written through it: remove it",
        ));
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path).map_err(failed)? {
            refuse_links(&entry.map_err(failed)?.path())?;
        }
    }
    Ok(())
}

fn refused(path: &Path, reason: &str) -> Failure {
    Failure::input(format!("{} {reason}", path.display()))
}
