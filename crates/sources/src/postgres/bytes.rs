//! Reads the fields of messages: numbers in network order, texts that end with a zero.

use bytes::{Buf as _, Bytes};

/// A message that is shorter or other than it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Garbled(pub(super) &'static str);

/// Takes a message apart from its beginning.
#[derive(Clone, Debug)]
pub(super) struct Parts(Bytes);

impl Parts {
    pub(super) fn new(message: Bytes) -> Self {
        Self(message)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Garbled> {
        self.has(1)?;
        Ok(self.0.get_u8())
    }

    pub(super) fn u16(&mut self) -> Result<u16, Garbled> {
        self.has(2)?;
        Ok(self.0.get_u16())
    }

    pub(super) fn u32(&mut self) -> Result<u32, Garbled> {
        self.has(4)?;
        Ok(self.0.get_u32())
    }

    pub(super) fn i32(&mut self) -> Result<i32, Garbled> {
        self.has(4)?;
        Ok(self.0.get_i32())
    }

    pub(super) fn u64(&mut self) -> Result<u64, Garbled> {
        self.has(8)?;
        Ok(self.0.get_u64())
    }

    pub(super) fn take(&mut self, length: usize) -> Result<Bytes, Garbled> {
        self.has(length)?;
        Ok(self.0.split_to(length))
    }

    /// A text up to a zero, which goes as well.
    pub(super) fn text(&mut self) -> Result<String, Garbled> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Garbled("a text has no end"))?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        String::from_utf8(text.to_vec()).map_err(|_| Garbled("a text is not UTF-8"))
    }

    /// A value with its length before it; `None` if the length is -1.
    pub(super) fn value(&mut self) -> Result<Option<Bytes>, Garbled> {
        match usize::try_from(self.i32()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    pub(super) fn rest(self) -> Bytes {
        self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has(&self, length: usize) -> Result<(), Garbled> {
        if self.0.len() >= length { Ok(()) } else { Err(Garbled("a message is cut off")) }
    }
}
