//! An allocator that counts exactly what a program has asked for: bytes in use, their peak, and the number of calls.
//!
//! For tests and benchmarks of memory. Resident memory depends on the machine and on luck; this does not.
//!
//! ```
//! use watchkeeper_counting::Counting;
//!
//! #[global_allocator]
//! static MEMORY: Counting = Counting::new();
//!
//! let before = MEMORY.in_use();
//! let kept = vec![0u8; 1_000];
//! assert_eq!(MEMORY.in_use() - before, 1_000);
//! drop(kept);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, counted. Install it with `#[global_allocator]`.
#[derive(Debug, Default)]
pub struct Counting {
    in_use: AtomicUsize,
    peak: AtomicUsize,
    calls: AtomicUsize,
}

impl Counting {
    /// With all counters at zero.
    pub const fn new() -> Self {
        Self { in_use: AtomicUsize::new(0), peak: AtomicUsize::new(0), calls: AtomicUsize::new(0) }
    }

    /// Bytes asked for and not given back.
    pub fn in_use(&self) -> usize {
        self.in_use.load(Relaxed)
    }

    /// The largest number of bytes in use since the last [`reset_peak`](Self::reset_peak).
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// From now on, the peak is what is in use now, or more.
    pub fn reset_peak(&self) {
        self.peak.store(self.in_use(), Relaxed);
    }

    /// How often memory was asked for, reallocations included.
    pub fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    fn grow(&self, bytes: usize) {
        self.calls.fetch_add(1, Relaxed);
        let now = self.in_use.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(now, Relaxed);
    }

    fn shrink(&self, bytes: usize) {
        self.in_use.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged. Counting touches no memory but its own atomics and
// does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.grow(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.grow(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.shrink(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // The old block is in use until the new one is there.
        self.grow(new_size);
        self.shrink(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
