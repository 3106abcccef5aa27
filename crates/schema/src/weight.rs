//! How much memory a document takes once it is decoded.
//!
//! A tree of values is larger than its text: an object with one field takes a node with room for eleven, so that eight bytes
//! of JSON, `{"":0},`, become 700 bytes of memory. What is counted here is what such trees ask of the allocator, to within a
//! few parts of a hundred. [`MAX_TREE`] is the most that a document may take.

use crate::Error;
use serde_json::Value;
use watchkeeper_core::json::{Cursor, MAX_DEPTH, SyntaxError};

/// The maximum memory of a decoded document, in bytes: 64 MiB.
///
/// That is 20 times the largest body, 1.5 million numbers in a list, or 90,000 objects with a field or two each.
pub const MAX_TREE: usize = 64 << 20;

/// A value in a list.
const VALUE: usize = size_of::<Value>();
/// How many fields fit a node of an object.
const ROOM: usize = 11;
/// A node of an object.
const NODE: usize = ROOM * (size_of::<String>() + VALUE) + 24;
/// How many of its fields a node keeps when fields come in order and it overflows.
const KEPT: usize = 6;
/// The least that the allocator gives, and what it needs for itself.
const ALLOCATION: (usize, usize) = (24, 8);

/// The memory of a document that is being decoded, as far as it is known.
///
/// What is added is refused with [`Error::TooLarge`] as soon as all of it is more than [`MAX_TREE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight(usize);

impl Weight {
    /// The number of bytes so far.
    pub fn bytes(self) -> usize {
        self.0
    }

    /// Adds a text of this length.
    pub fn text(&mut self, length: usize) -> Result<(), Error> {
        self.add(if length == 0 { 0 } else { length.max(ALLOCATION.0) + ALLOCATION.1 })
    }

    /// Adds a field to an object that has this many, without the field's value.
    pub fn field(&mut self, fields: usize, name: usize) -> Result<(), Error> {
        let overflows = fields >= ROOM && (fields - ROOM).is_multiple_of(KEPT);
        self.add(if fields == 0 || overflows { NODE } else { 0 })?;
        self.text(name)
    }

    /// Adds an item to a list that has this many, without what the item refers to.
    pub fn item(&mut self, items: usize) -> Result<(), Error> {
        self.add(match items {
            0 => 4 * VALUE + ALLOCATION.1,
            // A list that is full is made twice as long.
            items if items >= 4 && items.is_power_of_two() => items * VALUE,
            _ => 0,
        })
    }

    /// Adds a value with all that is in it, wherever it is put.
    pub fn value(&mut self, value: &Value) -> Result<(), Error> {
        match value {
            Value::String(text) => self.text(text.len()),
            Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
                self.item(index)?;
                self.value(item)
            }),
            Value::Object(fields) => fields.iter().enumerate().try_for_each(|(index, (name, field))| {
                self.field(index, name.len())?;
                self.value(field)
            }),
            _ => Ok(()),
        }
    }

    /// Adds what would be decoded from JSON, and says whether all of it is JSON. If it is not, what comes before the mistake
    /// is added. Nothing is built.
    pub fn json(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let mut cursor = Cursor::new(bytes);
        match self.walk(&mut cursor, MAX_DEPTH) {
            Err(Stop::TooLarge(error)) => Err(error),
            Err(Stop::Syntax) => Ok(false),
            Ok(()) => Ok(cursor.end().is_ok()),
        }
    }

    fn walk(&mut self, cursor: &mut Cursor<'_>, depth: u32) -> Result<(), Stop> {
        let open = cursor.peek()?;
        match open {
            b'"' => return Ok(self.text(cursor.string()?.raw.len())?),
            b'{' | b'[' => {}
            _ => return Ok(cursor.skip().map(drop)?),
        }
        let depth = depth.checked_sub(1).ok_or(Stop::Syntax)?;
        let close = open + 2;
        cursor.expect(open, "a container")?;
        if cursor.closes_at_once(close)? {
            return Ok(());
        }
        for count in 0.. {
            if open == b'{' {
                self.field(count, cursor.name()?.raw.len())?;
            } else {
                self.item(count)?;
            }
            self.walk(cursor, depth)?;
            if !cursor.more(close)? {
                break;
            }
        }
        Ok(())
    }

    fn add(&mut self, bytes: usize) -> Result<(), Error> {
        self.0 = self.0.saturating_add(bytes);
        if self.0 > MAX_TREE { Err(Error::TooLarge) } else { Ok(()) }
    }
}

/// Why a walk ended early.
enum Stop {
    Syntax,
    TooLarge(Error),
}

impl From<SyntaxError> for Stop {
    fn from(_: SyntaxError) -> Self {
        Self::Syntax
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::TooLarge(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use proptest::prelude::*;

    fn of_json(text: &str) -> Result<usize, Error> {
        let mut weight = Weight::default();
        weight.json(text.as_bytes()).map(|_| weight.bytes())
    }

    #[test]
    fn small_objects_are_what_they_take_and_not_what_they_say() {
        assert_eq!(of_json("0"), Ok(0));
        assert_eq!(of_json(r#"{"":0}"#), Ok(640));
        assert_eq!(of_json(r#"[{"":0}]"#), Ok(640 + 4 * 32 + 8));
        assert_eq!(of_json(r#"{"a":"b"}"#), Ok(640 + 32 + 32));
        assert_eq!(of_json("[[],{},[]]"), Ok(4 * 32 + 8));
        assert_eq!(of_json("[0,0,0,0,0]"), Ok(8 * 32 + 8));
        let fields: Vec<_> = (0..23).map(|field| format!(r#""":{field}"#)).collect();
        assert_eq!(of_json(&format!("{{{}}}", fields.join(","))), Ok(3 * 640));
    }

    #[test]
    fn a_document_that_would_grow_a_hundredfold_is_too_large_and_a_dense_honest_one_is_not() {
        let many =
            |item: &str, bytes: usize| format!("[{}0]", format!("{item},").repeat(bytes / (item.len() + 1)));
        assert_eq!(of_json(&many(r#"{"":0}"#, 3_000_000)), Err(Error::TooLarge));
        assert_eq!(of_json(&many("[0]", 3_000_000)), Err(Error::TooLarge));
        assert!(of_json(&many("0", 2_000_000)).is_ok());
        assert!(of_json(&many(r#"{"name":"port-12345","value":"1"}"#, 1_500_000)).is_ok());
        assert!(of_json(&format!("{{\"data\":\"{}\"}}", "x".repeat(3_000_000))).unwrap() < 3_001_000);
    }

    #[test]
    fn what_comes_before_a_mistake_counts() {
        let mut weight = Weight::default();
        assert_eq!(weight.json(br#"[{"":0},{"":0},oh"#), Ok(false));
        assert_eq!(weight.bytes(), 2 * 640 + 4 * 32 + 8);
        assert_eq!(Weight::default().json(b"{} {}"), Ok(false));
        assert_eq!(Weight::default().json("[".repeat(1_000_000).as_bytes()), Ok(false));
    }

    proptest! {
        /// The text and the tree weigh the same, unless a field is there twice or a text is escaped.
        #[test]
        fn the_text_and_the_tree_weigh_the_same(value in crate::arbitrary::value()) {
            let mut tree = Weight::default();
            tree.value(&value).unwrap();
            let text = serde_json::to_string(&value).unwrap();
            prop_assume!(!text.contains('\\'));
            prop_assert_eq!(Ok(tree.bytes()), of_json(&text), "{}", text);
            prop_assert_eq!(json::decode(text.as_bytes()).is_ok(), true);
        }
    }
}
