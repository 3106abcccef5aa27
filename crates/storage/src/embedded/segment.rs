use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::frame::Sealed;
use super::header::HEADER;
use crate::tree::Tree;
use crate::{Event, Revision};

/// A segment of the log that was read.
pub(crate) struct Segment {
    pub(crate) salt: u64,
    /// Where the last complete frame ends.
    pub(crate) end: usize,
    /// Up to here, a later frame says that it is durable.
    pub(crate) vouched: usize,
}

/// Something in a segment that no crash can have left.
pub(crate) struct Damage {
    pub(crate) offset: usize,
    pub(crate) reason: String,
}

/// Applies all frames of a segment. Pure.
///
/// Nothing but zeros is space that was reserved for frames; if frames are missing there, the next segment tells. A frame
/// that cannot be read is the end of the log if it may have been interrupted: in the last segment, if no later frame says
/// that its revisions are durable. Otherwise it is damage. The one thing that cannot be told apart is damage
/// to the very last frame, unless the storage was closed in good order, which leaves an empty frame that vouches for
/// all others.
pub(crate) fn replay(
    file: &Bytes,
    salt: u64,
    is_last: bool,
    tree: &mut Tree,
    events: &mut Vec<Arc<Event>>,
) -> Result<Segment, Damage> {
    let mut offset = HEADER;
    // Frames that nobody has vouched for: offset and last revision.
    let mut open: VecDeque<(usize, Revision)> = VecDeque::new();
    while offset < file.len() {
        let next = tree.revision() + 1;
        let Some(frame) = Sealed::read(file, offset, salt) else {
            if is_reserved(&file[offset..]) {
                break;
            }
            if !is_last || is_vouched_for(file, offset, salt, next) {
                let reason = format!("revision {next} cannot be read although it was durable");
                return Err(Damage { offset, reason });
            }
            break;
        };
        apply(&frame, next, tree, events).map_err(|reason| Damage { offset, reason })?;
        open.push_back((offset, tree.revision()));
        while open.front().is_some_and(|(_, last)| *last <= frame.durable) {
            open.pop_front();
        }
        offset += frame.length;
    }
    Ok(Segment { salt, end: offset, vouched: open.front().map_or(offset, |(offset, _)| *offset) })
}

/// Whether this was written in advance, for frames to come.
pub(crate) fn is_reserved(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Whether a valid frame after an offset says that a revision is durable.
fn is_vouched_for(file: &Bytes, mut offset: usize, salt: u64, revision: Revision) -> bool {
    while let Some((found, frame)) = Sealed::find(file, offset + 1, salt) {
        if frame.durable >= revision {
            return true;
        }
        offset = found;
    }
    false
}

fn apply(
    frame: &Sealed,
    next: Revision,
    tree: &mut Tree,
    events: &mut Vec<Arc<Event>>,
) -> Result<(), String> {
    if frame.first != next {
        return Err(format!("revision {} where {next} should be", frame.first));
    }
    let commits = frame.commits().ok_or("a frame holds something else than commits")?;
    for commit in commits {
        match tree.apply(&commit) {
            Ok((_, caused)) if !caused.is_empty() => events.extend(caused),
            _ => return Err("a commit that changes nothing".into()),
        }
    }
    Ok(())
}
