use std::io;
use std::sync::Arc;

use super::disk::{Disk, DiskFile, is_full};
use super::frame::Frame;
use super::header::{HEADER, Header, Kind};
use crate::{Error, Revision};

/// The segment of the log that is written to.
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    pub(crate) name: String,
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) salt: u64,
    /// Where the next frame goes.
    pub(crate) length: u64,
    /// Where the file ends. What is between holds zeros.
    reserved: u64,
    /// The last revision written.
    pub(crate) written: Revision,
    /// The last revision known to be on the disk.
    pub(crate) durable: Revision,
}

impl Log {
    /// Goes on in a segment that was read: all of it is durable.
    pub(crate) fn resume(
        disk: Arc<dyn Disk>,
        name: String,
        file: Box<dyn DiskFile>,
        salt: u64,
        length: u64,
        written: Revision,
    ) -> Self {
        Self { disk, name, file, salt, length, reserved: length, written, durable: written }
    }

    /// Begins a segment after a revision that is durable. When this returns, the segment is durable too.
    pub(crate) fn create(disk: Arc<dyn Disk>, after: Revision) -> io::Result<Self> {
        let name = Kind::Log.name(after + 1);
        let header = Header::new(after + 1);
        let written = disk.create(&name).and_then(|mut file| {
            file.write_at(0, &header.encode(Kind::Log))?;
            file.sync()?;
            disk.sync_directory()?;
            Ok(file)
        });
        match written {
            Ok(file) => Ok(Self::resume(disk, name, file, header.salt, HEADER as u64, after)),
            Err(error) => {
                // Best effort: a segment without frames means nothing to whoever reads the log.
                let _ = disk.remove(&name);
                Err(error)
            }
        }
    }

    /// Writes a frame whose last revision is `last`. On failure nothing of it counts.
    pub(crate) fn append(&mut self, frame: &mut Frame, last: Revision) -> Result<(), Error> {
        let bytes = frame.seal(self.salt, self.written + 1, self.durable);
        if let Err(error) = self.file.write_at(self.length, bytes) {
            return Err(self.withdraw(&error));
        }
        self.length += bytes.len() as u64;
        self.reserved = self.reserved.max(self.length);
        self.written = last;
        Ok(())
    }

    /// Once what was reserved is used up, reserves so many bytes more, for the next sync to make durable with all else. Space that is not there is no
    /// failure: the frames that come may well fit.
    pub(crate) fn reserve(&mut self, bytes: u64) {
        if self.reserved > self.length || bytes == 0 {
            return;
        }
        match self.file.write_at(self.length, &vec![0; bytes as usize]) {
            Ok(()) => self.reserved = self.length + bytes,
            Err(_) => self.release(),
        }
    }

    /// Gives back what was reserved. If that fails, the zeros stay: whoever reads the log knows them for what they are.
    pub(crate) fn release(&mut self) {
        let _ = self.file.truncate(self.length);
        self.reserved = self.length;
    }

    /// Makes everything written durable. If that fails, it may be lost although it can still be read, and trying again
    /// may succeed without having written anything: there is no way on but to read the file anew.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.file.sync().map_err(|error| Error::Unknown { reason: self.describe("syncing", &error) })?;
        self.durable = self.written;
        Ok(())
    }

    /// Cuts off what a failed write has left.
    fn withdraw(&mut self, error: &io::Error) -> Error {
        let reason = self.describe("writing", error);
        self.reserved = self.length;
        match self.file.truncate(self.length) {
            Err(error) => Error::Unknown {
                reason: format!("{reason}; {}", self.describe("cutting off what was written", &error)),
            },
            Ok(()) if is_full(error) => Error::Full { reason },
            Ok(()) => Error::Halted { reason },
        }
    }

    fn describe(&self, doing: &str, error: &io::Error) -> String {
        format!("{doing} {}: {error}", self.disk.path(&self.name).display())
    }
}
