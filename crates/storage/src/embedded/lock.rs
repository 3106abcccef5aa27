use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::Error;

const NAME: &str = "LOCK";

/// The exclusive right to a directory, for as long as this lives. The operating system takes it back when the process
/// dies, however it dies.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "open is locked")] File);

impl Lock {
    pub(crate) fn acquire(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        let io = |reason: io::Error| Error::Io {
            doing: format!("locking {}", path.display()),
            reason: reason.to_string(),
        };
        let options = File::options().create(true).truncate(false).read(true).write(true).clone();
        let mut file = options.open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(io(error)),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { directory: directory.into(), holder: holder(&mut file) });
            }
        }
        file.set_len(0).map_err(io)?;
        // Only a courtesy to whoever comes second: on a full disk the lock holds without it.
        let _ = writeln!(file, "process {}", std::process::id());
        Ok(Self(file))
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(200).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "another process that has not left its number".to_owned(),
    }
}
