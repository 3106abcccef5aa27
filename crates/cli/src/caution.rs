//! What is said, or refused, before a server with secrets starts.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use watchkeeper_apiserver::Authorization;

use crate::failure::Failure;

/// Warns of what opens a server to more people than its administrator may have in mind.
pub(crate) fn warn_of_openness(listen: SocketAddr, authorization: Authorization) {
    if authorization != Authorization::Rbac {
        tracing::warn!("authorization is off: every client with credentials may do everything");
    }
    if !listen.ip().is_loopback() {
        tracing::warn!("listening on {listen}: other machines can connect");
    }
}

/// Refuses a directory for data that every user of the machine can write to: whoever does could put files in the place of
/// ours. One that is not there will be made for this user alone.
pub(crate) fn check_data_directory(directory: &Path) -> Result<(), Failure> {
    let Ok(metadata) = fs::metadata(directory) else { return Ok(()) };
    let (shown, mode) = (directory.display(), metadata.permissions().mode() & 0o7777);
    if mode & 0o002 != 0 {
        return Err(Failure::input(format!(
            "{shown}: everybody can write to it (mode {mode:04o}): run chmod 700 {shown}, or name a new directory in it, \
             which is made for you alone"
        )));
    }
    if mode & 0o020 != 0 {
        tracing::warn!("{shown}: its group can write to it (mode {mode:04o}): run chmod 700 {shown}");
    }
    let owner = metadata.uid();
    if ![0, geteuid().as_raw()].contains(&owner) {
        tracing::warn!("{shown}: belongs to another user (uid {owner}), who can change what is kept there");
    }
    Ok(())
}

/// Keeps keys and tokens out of core dumps.
pub(crate) fn disable_core_dumps() {
    let limit = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
    if let Err(error) = setrlimit(Resource::Core, limit) {
        tracing::warn!(%error, "core dumps cannot be disabled; they would contain keys and tokens");
    }
}
