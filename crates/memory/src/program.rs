//! The code of the program itself, as far as it is in memory.

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::{c_int, c_void};
    use std::{fs, str};

    unsafe extern "C" {
        fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int;
    }

    /// `MADV_DONTNEED` of mman.h.
    const DONT_NEED: c_int = 4;

    /// A stretch of addresses.
    struct Stretch {
        start: usize,
        length: usize,
    }

    pub(super) fn release() {
        for Stretch { start, length } in unchanged_code().unwrap_or_default() {
            let start = std::ptr::with_exposed_provenance_mut(start);
            // SAFETY: the stretch is code of the program's file that nobody has written to. Whoever executes or reads it next is given
            // the same bytes again, from the file.
            unsafe { madvise(start, length, DONT_NEED) };
        }
    }

    /// Where the code of the program's file is mapped, without stretches of which this process has a copy of its own, as a debugger
    /// makes for its breakpoints: those are not in the file.
    fn unchanged_code() -> Option<Vec<Stretch>> {
        let program = fs::read_link("/proc/self/exe").ok()?;
        let program = program.to_str()?;
        let maps = fs::read("/proc/self/smaps").ok()?;
        let (mut found, mut current) = (Vec::new(), None);
        for line in maps.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok()) {
            if let Some(stretch) = mapping(line) {
                current = stretch.filter(|_| line.contains(" r-xp ") && line.ends_with(program));
            } else if let Some(own) = line.strip_prefix("Anonymous:") {
                let is_unchanged = own.split_whitespace().next() == Some("0");
                found.extend(current.take().filter(|_| is_unchanged));
            }
        }
        Some(found)
    }

    /// The stretch that a line begins the description of; `None` within if it makes no sense.
    fn mapping(line: &str) -> Option<Option<Stretch>> {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let [start, end] = [start, end].map(|number| usize::from_str_radix(number, 16));
        let (Ok(start), Ok(end)) = (start, end) else { return Some(None) };
        Some(end.checked_sub(start).map(|length| Stretch { start, length }))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// How much code of this program is in memory, in kB.
        fn resident() -> usize {
            let (name, maps) =
                (fs::read_link("/proc/self/exe").unwrap(), fs::read_to_string("/proc/self/smaps").unwrap());
            let mut lines = maps
                .lines()
                .skip_while(|line| !(line.contains(" r-xp ") && line.ends_with(name.to_str().unwrap())));
            let line = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        }

        #[test]
        fn code_is_forgotten_and_runs_on() {
            // Whatever is read is in memory.
            let code = unchanged_code().unwrap();
            assert!(!code.is_empty(), "the program has code");
            let all = || -> u64 {
                let bytes = code
                    .iter()
                    .flat_map(|stretch| (stretch.start..stretch.start + stretch.length).step_by(4096));
                // SAFETY: it is mapped, and can be read.
                bytes.map(|at| u64::from(unsafe { *std::ptr::with_exposed_provenance::<u8>(at) })).sum()
            };
            let (sum, before) = (all(), resident());
            release();
            let after = resident();
            // What runs comes back at once, with what is around it: much of a program as small as this one.
            assert!(after < before / 10 * 9, "{before} kB before, {after} kB after");
            assert_eq!(all(), sum);
        }

        #[test]
        fn lines_of_smaps_are_told_apart() {
            let line = "5560dfaee000-5560dfaef000 r-xp 00000000 fe:00 12 /a/b";
            let stretch = mapping(line).unwrap().unwrap();
            assert_eq!((stretch.start, stretch.length), (0x5560_dfae_e000, 4096));
            for line in ["Rss: 12 kB", "VmFlags: rd ex", "", "x"] {
                assert!(mapping(line).is_none(), "{line}");
            }
            assert!(mapping("2000-1000 r-xp").unwrap().is_none());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn release() {}
}

/// Takes the code that was executed so far out of the memory of this process. To be called when a program has started and goes on to do
/// something else: what is executed again comes back, a page at a time, from the file or from what the system keeps of it; what only the start
/// has needed does not, and is the first that the system does without when memory is short.
///
/// Takes less than a millisecond. On other systems than Linux, nothing is done.
pub fn release_start() {
    system::release();
}
