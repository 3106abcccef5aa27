//! Gives memory back that a program does not use any more.
//!
//! The allocator of glibc keeps what is freed, for the next time. After a burst that can be hundreds of megabytes, and there
//! may be no next time. [`start_trimming`] looks now and then at how much memory is resident and how much of it is in use, and
//! has the allocator give the difference back if it has grown.
//!
//! On systems with another allocator nothing is done: those that are common there give memory back by themselves.
//!
//! [`release_start`] does the same with the code of the program that only its start has needed.

mod program;

use std::io;
use std::num::NonZero;
use std::thread;
use std::time::Duration;

pub use program::release_start;

/// How often memory is looked at.
const INTERVAL: Duration = Duration::from_secs(3);

/// How much more must be kept than after the last time for it to be given back. To do it for less is not worth the time in
/// which others wait for the allocator.
const WORTHWHILE: usize = 4 << 20;

/// Begins to look after the memory of this process, on a thread of its own that ends with the process.
///
/// Threads that begin to allocate from now on share as many arenas as there are processors: each arena keeps some megabytes
/// at its end that cannot be given back.
pub fn start_trimming() -> io::Result<()> {
    if system::usage().is_none() {
        return Ok(());
    }
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    system::limit_arenas(processors.max(2));
    let look_after = || {
        let mut trimmer = Trimmer::default();
        loop {
            thread::sleep(INTERVAL);
            let Some(usage) = system::usage() else { return };
            if trimmer.is_worthwhile(usage) {
                system::trim();
                trimmer.trimmed(system::usage().unwrap_or(usage));
            }
        }
    };
    thread::Builder::new().name("memory".into()).spawn(look_after).map(drop)
}

/// How much memory a process takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Usage {
    /// What the system has given to the process, files not counted.
    resident: usize,
    /// What the program has asked for and not freed.
    in_use: usize,
}

impl Usage {
    fn kept(self) -> usize {
        self.resident.saturating_sub(self.in_use)
    }
}

/// Decides when memory is given back.
#[derive(Debug, Default)]
struct Trimmer {
    /// What cannot be given back: stacks, and pages of which a part is in use.
    stuck: usize,
    /// What was in use when it was looked at last.
    in_use: usize,
    /// Whether memory was given back in the middle of a burst, perhaps: much of what was in use then can be given back later.
    again: bool,
}

impl Trimmer {
    fn is_worthwhile(&mut self, usage: Usage) -> bool {
        let calm = usage.in_use.abs_diff(self.in_use) < WORTHWHILE / 4;
        self.in_use = usage.in_use;
        self.stuck = self.stuck.min(usage.kept());
        if usage.kept() > self.stuck + WORTHWHILE {
            self.again = true;
            return true;
        }
        calm && usage.kept() > WORTHWHILE && std::mem::take(&mut self.again)
    }

    fn trimmed(&mut self, usage: Usage) {
        self.stuck = usage.kept();
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use super::Usage;
    use std::ffi::c_int;

    /// `struct mallinfo2` of malloc.h, which glibc has had since 2.33.
    #[repr(C)]
    struct Mallinfo {
        arena: usize,
        ordblks: usize,
        smblks: usize,
        hblks: usize,
        hblkhd: usize,
        usmblks: usize,
        fsmblks: usize,
        uordblks: usize,
        fordblks: usize,
        keepcost: usize,
    }

    unsafe extern "C" {
        fn mallinfo2() -> Mallinfo;
        fn malloc_trim(pad: usize) -> c_int;
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }

    /// `M_ARENA_MAX` of malloc.h.
    const ARENA_MAX: c_int = -8;

    pub(super) fn limit_arenas(most: usize) {
        let most = c_int::try_from(most).unwrap_or(c_int::MAX);
        // SAFETY: it is safe to be called from any thread, and only sets how many arenas there may be.
        unsafe { mallopt(ARENA_MAX, most) };
    }

    pub(super) fn usage() -> Option<Usage> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let resident = line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? << 10;
        // SAFETY: it takes nothing, is safe to be called from any thread, and returns numbers.
        let info = unsafe { mallinfo2() };
        Some(Usage { resident, in_use: info.uordblks + info.hblkhd })
    }

    pub(super) fn trim() {
        // SAFETY: it is safe to be called from any thread, and gives back only what nobody has a pointer to.
        unsafe { malloc_trim(0) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    use super::Usage;

    pub(super) fn usage() -> Option<Usage> {
        None
    }

    pub(super) fn trim() {}

    pub(super) fn limit_arenas(_most: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mib(resident: usize, in_use: usize) -> Usage {
        Usage { resident: resident << 20, in_use: in_use << 20 }
    }

    #[test]
    fn what_is_in_use_is_left_alone_and_what_was_freed_is_given_back() {
        let mut trimmer = Trimmer::default();
        assert!(!trimmer.is_worthwhile(mib(8, 6)));
        assert!(!trimmer.is_worthwhile(mib(600, 598)), "a burst");
        assert!(trimmer.is_worthwhile(mib(600, 6)), "its end");
        trimmer.trimmed(mib(9, 6));
        assert!(!trimmer.is_worthwhile(mib(9, 6)));
    }

    #[test]
    fn what_cannot_be_given_back_is_not_tried_again_until_there_is_more() {
        let mut trimmer = Trimmer::default();
        assert!(trimmer.is_worthwhile(mib(100, 50)));
        trimmer.trimmed(mib(90, 50));
        assert!(trimmer.is_worthwhile(mib(90, 50)), "once more, now that nothing moves");
        trimmer.trimmed(mib(90, 50));
        assert!(!trimmer.is_worthwhile(mib(93, 50)));
        assert!(trimmer.is_worthwhile(mib(95, 50)));
        trimmer.trimmed(mib(52, 50));
        assert!(trimmer.is_worthwhile(mib(57, 50)));
    }

    #[test]
    fn what_was_in_use_in_the_middle_of_a_burst_is_given_back_when_it_is_over() {
        let mut trimmer = Trimmer::default();
        assert!(trimmer.is_worthwhile(mib(60, 30)));
        trimmer.trimmed(mib(42, 30));
        assert!(!trimmer.is_worthwhile(mib(14, 4)), "the burst ends");
        assert!(trimmer.is_worthwhile(mib(14, 4)), "it is over");
        trimmer.trimmed(mib(5, 4));
        assert!(!trimmer.is_worthwhile(mib(5, 4)));
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn freed_memory_between_pieces_in_use_is_given_back() {
        let mut pieces: Vec<Vec<u8>> = (0..200_000).map(|_| vec![1; 500]).collect();
        let full = system::usage().unwrap();
        // Something is left at the end, so that the heap cannot just be cut.
        let last = pieces.pop();
        drop(pieces);
        let freed = system::usage().unwrap();
        assert!(freed.in_use + (90 << 20) < full.in_use, "{full:?} {freed:?}");
        system::trim();
        let trimmed = system::usage().unwrap();
        assert!(trimmed.resident + (80 << 20) < full.resident, "{full:?} {trimmed:?}");
        drop(last);
    }
}
