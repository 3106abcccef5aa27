//! Reads and writes the fields of packets. Without I/O.

use bytes::{Buf as _, Bytes};

use super::failure::Failure;

/// What is left of a packet to be read.
pub(super) struct Parts(Bytes);

impl Parts {
    pub(super) fn new(body: Bytes) -> Self {
        Self(body)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many bytes.
    pub(super) fn take(&mut self, length: usize) -> Result<Bytes, Failure> {
        if self.0.len() < length {
            return Err(Failure::garbled("a packet ends too early"));
        }
        Ok(self.0.split_to(length))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Failure> {
        Ok(self.take(1)?.get_u8())
    }

    pub(super) fn u16(&mut self) -> Result<u16, Failure> {
        Ok(self.take(2)?.get_u16_le())
    }

    pub(super) fn u32(&mut self) -> Result<u32, Failure> {
        Ok(self.take(4)?.get_u32_le())
    }

    /// A text that ends with a zero, or with the packet.
    pub(super) fn text(&mut self) -> Result<String, Failure> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = self.take(end.unwrap_or(self.0.len()))?;
        if end.is_some() {
            self.take(1)?;
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// All the rest.
    pub(super) fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.0)
    }

    /// An integer of one to nine bytes.
    pub(super) fn length(&mut self) -> Result<u64, Failure> {
        let first = self.u8()?;
        self.length_after(first)
    }

    fn length_after(&mut self, first: u8) -> Result<u64, Failure> {
        Ok(match first {
            0..=0xfa => u64::from(first),
            0xfc => u64::from(self.u16()?),
            0xfd => self.take(3)?.get_uint_le(3),
            0xfe => self.take(8)?.get_u64_le(),
            _ => return Err(Failure::garbled("a length is none")),
        })
    }

    /// A value of a row: `NULL`, or as many bytes as it says.
    pub(super) fn value(&mut self) -> Result<Option<Bytes>, Failure> {
        let first = self.u8()?;
        if first == 0xfb {
            return Ok(None);
        }
        let length = self.length_after(first)?;
        let length = usize::try_from(length).map_err(|_| Failure::garbled("a length is too large"))?;
        Ok(Some(self.take(length)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(bytes: &'static [u8]) -> Parts {
        Parts::new(Bytes::from_static(bytes))
    }

    #[test]
    fn lengths_have_one_to_nine_bytes() {
        for (bytes, expected) in [
            (&b"\x07"[..], 7),
            (b"\xfa", 250),
            (b"\xfc\x01\x02", 0x201),
            (b"\xfd\x01\x02\x03", 0x03_02_01),
            (b"\xfe\x01\0\0\0\0\0\0\0", 1),
        ] {
            assert_eq!(parts(bytes).length().unwrap(), expected);
        }
        assert!(parts(b"\xff").length().is_err() && parts(b"\xfc\x01").length().is_err());
    }

    #[test]
    fn values_are_texts_or_nothing_and_never_longer_than_their_packet() {
        let mut row = parts(b"\x02ab\xfb\x00");
        assert_eq!(row.value().unwrap().unwrap(), "ab");
        assert_eq!(row.value().unwrap(), None);
        assert_eq!(row.value().unwrap().unwrap(), "");
        assert!(row.is_empty());
        assert!(parts(b"\x05ab").value().is_err());
        assert!(parts(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xffab").value().is_err());
        assert_eq!(parts(b"ab\0c").text().unwrap(), "ab");
        assert_eq!(parts(b"ab").text().unwrap(), "ab");
    }
}
