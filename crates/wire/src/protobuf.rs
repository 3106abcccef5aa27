//! The wire format of protobuf: tagged fields, one after the other.

use std::fmt;

/// The value of a field as it lies in the bytes.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// An integer, a flag or a choice.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes, which nobody has asked for yet.
    Fixed32,
    /// Bytes, text or a message.
    Bytes(&'a [u8]),
}

impl Payload<'_> {
    /// The error of a field that wants another payload.
    pub fn misfit(self, field: &str) -> Error {
        let wire_type = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        };
        Error::new(&format!("wrong wireType = {wire_type} for field {field}"))
    }
}

/// Reads a message field by field.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from exactly these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The number and value of the next field.
    #[allow(clippy::should_implement_trait, reason = "it fails, and what follows a failure means nothing")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..=i32::MAX as u32).contains(number));
        let number =
            number.ok_or_else(|| Error::new(&format!("illegal tag {} (wire type {tag})", tag >> 3)))?;
        let payload = match tag & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                Payload::Fixed64(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
            }
            2 => {
                let length = self.varint()?;
                Payload::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => self.take(4).map(|_| Payload::Fixed32)?,
            other => return Err(Error::new(&format!("illegal wireType {other}"))),
        };
        Ok(Some((number, payload)))
    }

    /// An integer without a tag.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Error::new("integer overflow"))
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Error(Problem::CutOff))?;
        self.rest = rest;
        Ok(taken)
    }
}

/// An error in the bytes, in the words of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Problem);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    CutOff,
    Malformed(String),
}

impl Error {
    /// An error in these words.
    pub fn new(what: &str) -> Self {
        Self(Problem::Malformed(what.into()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Problem::CutOff => f.write_str("unexpected EOF"),
            Problem::Malformed(what) => write!(f, "proto: {what}"),
        }
    }
}

impl std::error::Error for Error {}

/// Writes a message at the end of a buffer.
#[derive(Debug, Default)]
pub struct Writer {
    /// The bytes written so far.
    pub bytes: Vec<u8>,
}

impl Writer {
    #[inline]
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Negative numbers are written as the large ones that have the same bits.
    #[inline]
    pub fn integer(&mut self, field: u32, number: i64) {
        self.varint(u64::from(field) << 3);
        self.varint(number as u64);
    }

    /// A floating-point number.
    pub fn double(&mut self, field: u32, number: f64) {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// The beginning of a field of so many bytes.
    #[inline]
    pub fn begin(&mut self, field: u32, length: usize) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(length as u64);
    }

    /// Bytes or text.
    #[inline]
    pub fn delimited(&mut self, field: u32, bytes: &[u8]) {
        self.begin(field, bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// A message, written by the function. `None` of the function ends it, and what was written is of no use then.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.varint(u64::from(field) << 3 | 2);
        // Most messages are short: one byte is left for the length, and what follows is moved if it needs more.
        let start = self.bytes.len();
        self.bytes.push(0);
        write(self)?;
        let length = self.bytes.len() - start - 1;
        if length < 0x80 {
            self.bytes[start] = length as u8;
        } else {
            let mut prefix = Self::default();
            prefix.varint(length as u64);
            self.bytes.splice(start..=start, prefix.bytes);
        }
        Some(())
    }
}
