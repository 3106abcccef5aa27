//! The one lock of the queue. In this crate's own unit tests it is shuttle's, which runs the very same code through
//! many interleavings; see `interleavings.rs`.

#[cfg(not(test))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(test)]
pub(crate) use shuttle::sync::MutexGuard;

#[cfg(test)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

#[cfg(test)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}
