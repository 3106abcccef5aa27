//! DER, the encoding of certificates: values with a tag and a length, one way to write each.

use crate::Malformed;

/// The tag of a truth value.
pub const BOOLEAN: u8 = 0x01;
/// The tag of a whole number.
pub const INTEGER: u8 = 0x02;
/// The tag of bits.
pub const BIT_STRING: u8 = 0x03;
/// The tag of bytes.
pub const OCTET_STRING: u8 = 0x04;
/// The tag of nothing.
pub const NULL: u8 = 0x05;
/// The tag of an object identifier.
pub const OBJECT_ID: u8 = 0x06;
/// The tag of text in UTF-8.
pub const UTF8_STRING: u8 = 0x0c;
/// The tag of a moment with two digits for the year.
pub const UTC_TIME: u8 = 0x17;
/// The tag of a moment with four digits for the year.
pub const GENERALIZED_TIME: u8 = 0x18;
/// The tag of several values in order.
pub const SEQUENCE: u8 = 0x30;
/// The tag of several values without order.
pub const SET: u8 = 0x31;

/// The tag of a value that its surroundings give a meaning: `[number] IMPLICIT`, of a value that is not made of others.
pub const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// The tag of `[number] EXPLICIT`.
pub const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// One value: its tag and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// The tag.
    pub tag: u8,
    /// The bytes after the length.
    pub content: &'a [u8],
    /// All of it, tag and length included.
    pub encoded: &'a [u8],
}

impl<'a> Value<'a> {
    /// Reads the values that it is made of.
    pub fn reader(&self) -> Reader<'a> {
        Reader::new(self.content)
    }

    /// The bytes of a number that is not negative, without leading zeros; zero has none.
    pub fn unsigned(&self) -> Result<&'a [u8], Malformed> {
        match self.content {
            [0] => Ok(&[]),
            [0, first, ..] if first & 0x80 != 0 => Ok(&self.content[1..]),
            [0, ..] | [] => Err(Malformed("a number is not written in the shortest way")),
            [first, ..] if first & 0x80 != 0 => Err(Malformed("a number is negative")),
            content => Ok(content),
        }
    }

    /// The bytes of bits that fill all of their bytes.
    pub fn whole_bits(&self) -> Result<&'a [u8], Malformed> {
        match self.content {
            [0, bytes @ ..] => Ok(bytes),
            _ => Err(Malformed("bits do not fill their bytes")),
        }
    }

    /// A truth value.
    pub fn boolean(&self) -> Result<bool, Malformed> {
        match self.content {
            [0x00] => Ok(false),
            [0xff] => Ok(true),
            _ => Err(Malformed("a truth value is neither true nor false")),
        }
    }

    /// The bytes of an object identifier.
    pub fn object_id(&self) -> Result<&'a [u8], Malformed> {
        let mut begins = true;
        for byte in self.content {
            if begins && *byte == 0x80 {
                return Err(Malformed("an object identifier is not written in the shortest way"));
            }
            begins = byte & 0x80 == 0;
        }
        // The last number of it has to end, and there is one.
        match begins && !self.content.is_empty() {
            true => Ok(self.content),
            false => Err(Malformed("an object identifier is cut off")),
        }
    }
}

/// Reads values that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether there are no more values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next value, whatever it is. Tags of more than one byte are not read: X.509 has none.
    pub fn value(&mut self) -> Result<Value<'a>, Malformed> {
        let all = self.0;
        let [tag, first, rest @ ..] = all else { return Err(Malformed("a value is cut off")) };
        if tag & 0x1f == 0x1f {
            return Err(Malformed("a tag has more than one byte"));
        }
        let (length, rest) = match first {
            0..0x80 => (usize::from(*first), rest),
            0x80 => return Err(Malformed("a length is indefinite")),
            _ => long_length(usize::from(first & 0x7f), rest)?,
        };
        let (content, rest) = rest.split_at_checked(length).ok_or(Malformed("a value is cut off"))?;
        self.0 = rest;
        Ok(Value { tag: *tag, content, encoded: &all[..all.len() - rest.len()] })
    }

    /// The next value, which has this tag.
    pub fn expect(&mut self, tag: u8) -> Result<Value<'a>, Malformed> {
        let value = self.value()?;
        match value.tag == tag {
            true => Ok(value),
            false => Err(Malformed("a value has another type than it should")),
        }
    }

    /// The next value, if it has this tag.
    pub fn optional(&mut self, tag: u8) -> Result<Option<Value<'a>>, Malformed> {
        match self.0.first() {
            Some(first) if *first == tag => self.value().map(Some),
            _ => Ok(None),
        }
    }

    /// Makes sure that there are no more values.
    pub fn finish(self) -> Result<(), Malformed> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(Malformed("something follows that does not belong there")),
        }
    }
}

/// A length that is written in so many bytes, and what follows it.
fn long_length(digits: usize, rest: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    if digits > 4 {
        return Err(Malformed("a value is longer than anything can be"));
    }
    let (digits, rest) = rest.split_at_checked(digits).ok_or(Malformed("a value is cut off"))?;
    let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
    if digits.first() == Some(&0) || length < 0x80 {
        return Err(Malformed("a length is not written in the shortest way"));
    }
    Ok((length, rest))
}

/// The one value of this tag that some bytes are.
pub fn only(tag: u8, bytes: &[u8]) -> Result<Value<'_>, Malformed> {
    let mut reader = Reader::new(bytes);
    let value = reader.expect(tag)?;
    reader.finish()?;
    Ok(value)
}

/// Writes a value.
pub fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    match length {
        0..=0x7f => out.push(length as u8),
        _ => {
            let bytes = length.to_be_bytes();
            let significant = &bytes[length.leading_zeros() as usize / 8..];
            out.push(0x80 | significant.len() as u8);
            out.extend_from_slice(significant);
        }
    }
    out.extend_from_slice(content);
    out
}

/// Writes several values in order.
pub fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tagged(SEQUENCE, &parts.concat())
}

/// Writes an object identifier, given [encoded](crate::oid).
pub fn object_id(encoded: &[u8]) -> Vec<u8> {
    tagged(OBJECT_ID, encoded)
}

/// Writes a number that is not negative, given by its bytes.
pub fn unsigned(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    match &bytes[zeros..] {
        [] => tagged(INTEGER, &[0]),
        number @ [first, ..] if first & 0x80 != 0 => tagged(INTEGER, &[&[0], number].concat()),
        number => tagged(INTEGER, number),
    }
}

/// Writes bits, of which the last byte leaves some unused.
pub fn bits(unused: u8, bytes: &[u8]) -> Vec<u8> {
    tagged(BIT_STRING, &[&[unused], bytes].concat())
}

/// Writes bytes.
pub fn octets(bytes: &[u8]) -> Vec<u8> {
    tagged(OCTET_STRING, bytes)
}

/// Writes a truth value.
pub fn boolean(is_true: bool) -> Vec<u8> {
    tagged(BOOLEAN, &[if is_true { 0xff } else { 0x00 }])
}
