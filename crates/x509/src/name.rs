use crate::der::{self, OBJECT_ID, Reader, SEQUENCE, SET, UTF8_STRING};
use crate::{Malformed, oid};

const NUMERIC_STRING: u8 = 0x12;
const PRINTABLE_STRING: u8 = 0x13;
const T61_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const BMP_STRING: u8 = 0x1e;

/// A name in a certificate or a request for one: attributes in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The name as it is written.
    pub encoded: &'a [u8],
    /// The attributes, in order, whichever of its sets they are in.
    pub attributes: Vec<Attribute<'a>>,
}

/// An attribute of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The [object identifier](crate::oid) of the attribute.
    pub id: &'a [u8],
    /// The text; `None` if the type of the value is no text.
    pub value: Option<String>,
}

impl<'a> Name<'a> {
    /// Reads the next name.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let name = reader.expect(SEQUENCE)?;
        let (mut sets, mut attributes) = (name.reader(), Vec::new());
        while !sets.is_empty() {
            let mut set = sets.expect(SET)?.reader();
            while !set.is_empty() {
                let mut attribute = set.expect(SEQUENCE)?.reader();
                let id = attribute.expect(OBJECT_ID)?.object_id()?;
                let value = attribute.value()?;
                attribute.finish()?;
                attributes.push(Attribute { id, value: text(value.tag, value.content)? });
            }
        }
        Ok(Self { encoded: name.encoded, attributes })
    }

    /// The values of all attributes with this object identifier that are text, in order.
    pub fn values(&self, id: &[u8]) -> impl DoubleEndedIterator<Item = &str> {
        self.attributes
            .iter()
            .filter(move |attribute| attribute.id == id)
            .filter_map(|attribute| attribute.value.as_deref())
    }

    /// The organizations that it names: for Kubernetes, groups.
    pub fn organizations(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.values(oid::ORGANIZATION)
    }
}

/// The text of a string, as Go reads it; `None` for what is no string.
fn text(tag: u8, bytes: &[u8]) -> Result<Option<String>, Malformed> {
    let is_good = match tag {
        UTF8_STRING => true,
        PRINTABLE_STRING => bytes.iter().all(|byte| is_printable(*byte)),
        NUMERIC_STRING => bytes.iter().all(|byte| byte.is_ascii_digit() || *byte == b' '),
        IA5_STRING => bytes.is_ascii(),
        // Near enough to Latin-1 to be taken for it.
        T61_STRING => return Ok(Some(bytes.iter().map(|byte| char::from(*byte)).collect())),
        BMP_STRING => return wide_text(bytes).map(Some),
        _ => return Ok(None),
    };
    let text = str::from_utf8(bytes).ok().filter(|_| is_good);
    text.map(|text| Some(text.to_owned())).ok_or(Malformed("a text has characters of another type"))
}

/// What is allowed in a `PrintableString`, and two characters that are not but are found there.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte)
}

/// Text of two bytes a character, which may end with a zero. Surrogates are no characters, and neither are those that never
/// will be.
fn wide_text(bytes: &[u8]) -> Result<String, Malformed> {
    const WRONG: Malformed = Malformed("a text has characters of another type");
    let bytes = bytes.strip_suffix(&[0, 0]).filter(|rest| rest.len() % 2 == 0).unwrap_or(bytes);
    let (pairs, []) = bytes.as_chunks::<2>() else { return Err(WRONG) };
    pairs
        .iter()
        .map(|pair| match u16::from_be_bytes(*pair) {
            0xfffe | 0xffff | 0xfdd0..=0xfdef => Err(WRONG),
            unit => char::from_u32(unit.into()).ok_or(WRONG),
        })
        .collect()
}

/// Writes a name: attributes in order, each one its own set.
pub fn name<'a>(attributes: impl IntoIterator<Item = (&'a [u8], &'a str)>) -> Vec<u8> {
    let mut all = Vec::new();
    for (id, value) in attributes {
        let pair = der::sequence(&[&der::object_id(id), &der::tagged(UTF8_STRING, value.as_bytes())]);
        all.extend(der::tagged(SET, &pair));
    }
    der::tagged(SEQUENCE, &all)
}
