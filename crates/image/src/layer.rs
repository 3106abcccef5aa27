use std::io::Write as _;

use flate2::{Compression, GzBuilder};

use crate::blob::{Blob, digest};
use crate::error::Error;
use crate::tar::{self, Entry};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A layer: what is transferred, and the digest of what it unpacks to.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) blob: Blob,
    pub(crate) unpacked: String,
    /// The archive before it is compressed, for those who cannot take it compressed.
    pub(crate) archive: Vec<u8>,
}

impl Layer {
    /// Packs files. The folders that they are in are added.
    pub(crate) fn new(files: &[Entry<'_>], time: u64) -> Result<Self, Error> {
        let mut folders: Vec<String> = Vec::new();
        for file in files {
            for (at, _) in file.path.match_indices('/') {
                let folder = file.path[..=at].to_owned();
                if !folders.contains(&folder) && !files.iter().any(|file| file.path == folder) {
                    folders.push(folder);
                }
            }
        }
        let folders = folders.iter().map(|path| Entry { path, mode: 0o755, bytes: &[] });
        let mut entries: Vec<Entry<'_>> = folders.chain(files.iter().cloned()).collect();
        entries.sort_by(|one, other| one.path.cmp(other.path));
        let archive = tar::write(&entries, time).map_err(Error::Input)?;
        let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        let packed = gzip.write_all(&archive).and_then(|()| gzip.finish());
        let packed = packed.map_err(|error| Error::File { path: "the layer".to_owned(), error })?;
        Ok(Self { blob: Blob::new(LAYER, packed), unpacked: digest(&archive), archive })
    }
}
