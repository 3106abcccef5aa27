//! How messages are written and read.

use bytes::Bytes;
use watchkeeper_wire::protobuf::{Error, Payload, Reader, Writer};

/// What can be sent.
pub(crate) trait Encode {
    fn encode(&self, writer: &mut Writer);
}

/// What can be received. Bytes in it share the memory of the message.
pub(crate) trait Decode: Sized {
    fn decode(message: &Bytes) -> Result<Self, Error>;
}

/// A message that says nothing, or whose content is of no interest.
pub(crate) struct Nothing;

impl Encode for Nothing {
    fn encode(&self, _writer: &mut Writer) {}
}

/// Calls the function with every field of a message.
pub(crate) fn fields(
    message: &Bytes,
    mut field: impl FnMut(u32, Value<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reader = Reader::new(message);
    while let Some((number, payload)) = reader.next()? {
        field(number, Value { message, payload, number })?;
    }
    Ok(())
}

/// The value of a field.
pub(crate) struct Value<'a> {
    message: &'a Bytes,
    payload: Payload<'a>,
    number: u32,
}

impl Value<'_> {
    fn misfit<T>(&self) -> Result<T, Error> {
        Err(self.payload.misfit(&self.number.to_string()))
    }

    pub(crate) fn integer(&self) -> Result<i64, Error> {
        match self.payload {
            Payload::Varint(number) => Ok(number as i64),
            _ => self.misfit(),
        }
    }

    pub(crate) fn unsigned(&self) -> Result<u64, Error> {
        self.integer().map(|number| number as u64)
    }

    pub(crate) fn flag(&self) -> Result<bool, Error> {
        self.integer().map(|number| number != 0)
    }

    pub(crate) fn bytes(&self) -> Result<Bytes, Error> {
        match self.payload {
            Payload::Bytes(bytes) => Ok(self.message.slice_ref(bytes)),
            _ => self.misfit(),
        }
    }

    /// Text; what is not UTF-8 is shown as such.
    pub(crate) fn text(&self) -> Result<String, Error> {
        self.bytes().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn message<M: Decode>(&self) -> Result<M, Error> {
        M::decode(&self.bytes()?)
    }
}

/// Fields that say nothing new are not written.
pub(crate) trait Fields {
    fn number(&mut self, field: u32, number: i64);
    fn flag(&mut self, field: u32, flag: bool);
    fn some_bytes(&mut self, field: u32, bytes: &[u8]);
    fn nested(&mut self, field: u32, message: &impl Encode);
}

impl Fields for Writer {
    fn number(&mut self, field: u32, number: i64) {
        if number != 0 {
            self.integer(field, number);
        }
    }

    fn flag(&mut self, field: u32, flag: bool) {
        self.number(field, i64::from(flag));
    }

    fn some_bytes(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.delimited(field, bytes);
        }
    }

    fn nested(&mut self, field: u32, message: &impl Encode) {
        self.message(field, |writer| {
            message.encode(writer);
            Some(())
        });
    }
}
