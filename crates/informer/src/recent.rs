use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::object::{AnyValue, Record};

/// The last few decoded values of a store, so that several readers of one change share one decode.
///
/// Direct-mapped: a record has one place, and a newer one takes it. A fixed number of values, so bounded memory.
pub(crate) struct Recent {
    places: Box<[Mutex<Option<Decoded>>]>,
}

/// The weak reference keeps the record's address from being given to another record, so that comparing addresses is
/// enough; it does not keep the record's body.
struct Decoded {
    record: Weak<Record>,
    value: AnyValue,
}

impl Recent {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { places: (0..capacity).map(|_| Mutex::new(None)).collect() }
    }

    pub(crate) fn get(&self, record: &Arc<Record>) -> Option<AnyValue> {
        let place = self.place(record)?.lock();
        let decoded =
            place.as_ref().filter(|decoded| std::ptr::eq(decoded.record.as_ptr(), Arc::as_ptr(record)))?;
        Some(Arc::clone(&decoded.value))
    }

    pub(crate) fn put(&self, record: &Arc<Record>, value: &AnyValue) {
        if let Some(place) = self.place(record) {
            let decoded = Decoded { record: Arc::downgrade(record), value: Arc::clone(value) };
            // The former value is dropped after the lock is released.
            let _former = place.lock().replace(decoded);
        }
    }

    fn place(&self, record: &Arc<Record>) -> Option<&Mutex<Option<Decoded>>> {
        let mixed = (Arc::as_ptr(record).addr() as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.places.get((mixed as usize).checked_rem(self.places.len())?)
    }
}
