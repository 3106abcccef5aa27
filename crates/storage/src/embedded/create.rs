use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use super::checkpoint;
use super::disk::{Directory, Disk};
use super::header::Kind;
use super::lock::Lock;
use super::recover::{begin, failed, is_new};
use crate::Error;
use crate::tree::Tree;

/// Creates a directory for its owner only, unless it is there.
pub(super) fn directory(path: &Path) -> Result<(), Error> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(|error| Error::Io {
        doing: format!("creating {}", path.display()),
        reason: error.to_string(),
    })
}

/// Makes a storage that begins with a state: a checkpoint, and a log without commits. `go_on` is told how many entries are written.
pub(crate) fn create(path: &Path, tree: &Tree, go_on: &dyn Fn(usize) -> bool) -> Result<(), Error> {
    directory(path)?;
    let _lock = Lock::acquire(path)?;
    let disk: Arc<dyn Disk> = Arc::new(Directory::new(path));
    if !is_new(&*disk)? {
        let shown = path.display();
        return Err(Error::Invalid(format!("{shown} holds a storage already: name another directory")));
    }
    let name = Kind::Checkpoint.name(tree.revision());
    // The log first: without it, a checkpoint is damage; without a checkpoint, it is a log that lacks its beginning. Neither is served.
    let log = begin(&disk, tree.revision())?;
    drop(log);
    checkpoint::write(&*disk, &name, tree, go_on).map_err(failed(&*disk, "writing", &name))?;
    Ok(())
}
