//! Archives in the form of POSIX (ustar), with nothing in them that differs from one machine to the next.

/// A file or folder of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    /// From the root, without a slash at the beginning; folders end with one.
    pub(crate) path: &'a str,
    pub(crate) mode: u32,
    pub(crate) bytes: &'a [u8],
}

const BLOCK: usize = 512;
/// What the number of a size has room for, in octal digits.
const LARGEST: usize = 0o77_777_777_777;

/// Writes an archive. Entries are written in the order in which they are given; all are root's, and of this time.
///
/// # Errors
///
/// If a path or a file is too long for the form. The text names it.
pub(crate) fn write(entries: &[Entry<'_>], time: u64) -> Result<Vec<u8>, String> {
    let mut archive = Vec::with_capacity(
        entries.iter().map(|entry| entry.bytes.len() + 2 * BLOCK).sum::<usize>() + 2 * BLOCK,
    );
    for entry in entries {
        archive.extend_from_slice(&header(entry, time)?);
        archive.extend_from_slice(entry.bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

fn header(entry: &Entry<'_>, time: u64) -> Result<[u8; BLOCK], String> {
    let (prefix, name) = split(entry.path).ok_or_else(|| format!("the path {:?} is too long", entry.path))?;
    if entry.bytes.len() > LARGEST {
        return Err(format!("{:?} is too large", entry.path));
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    let kind = if entry.path.ends_with('/') { b"5" } else { b"0" };
    put(0, name.as_bytes());
    put(100, format!("{:07o}", entry.mode & 0o7777).as_bytes());
    put(108, b"0000000"); // owner
    put(116, b"0000000"); // group
    put(124, format!("{:011o}", entry.bytes.len()).as_bytes());
    put(136, format!("{:011o}", time.min(LARGEST as u64)).as_bytes());
    put(148, b"        "); // the checksum counts as spaces
    put(156, kind);
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// A path as prefix and name, which have 155 and 100 bytes.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= 100 {
        return Some(("", path));
    }
    let fits = |at: &usize| *at <= 155 && path.len() - at - 1 <= 100 && path.len() - at > 1;
    path.match_indices('/').map(|(at, _)| at).find(fits).map(|at| (&path[..at], &path[at + 1..]))
}
