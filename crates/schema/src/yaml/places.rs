//! Where the values of a document are, for messages that point into a file.

use super::scalar;
use crate::json::MAX_DEPTH;
use saphyr_parser::{Event, Parser, Span, StrInput};
use std::collections::HashMap;

/// The beginning of a value in a document: of a member its name, of an item the item itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// The places of all values of a document, by JSON pointer.
#[derive(Clone, Debug, Default)]
pub struct Places {
    places: HashMap<String, Place>,
}

impl Places {
    /// The place of the value that a JSON pointer leads to. Where there is none, as for a member that is missing, the place of the
    /// nearest value around it.
    pub fn of(&self, pointer: &str) -> Place {
        let mut pointer = pointer;
        loop {
            match (self.places.get(pointer), pointer.rfind('/')) {
                (Some(place), _) => return *place,
                (None, Some(end)) => pointer = &pointer[..end],
                (None, None) => return Place { line: 1, column: 1 },
            }
        }
    }
}

/// Finds the places of all values in the first document of a text. Of a text that cannot be read, those before the mistake.
///
/// ```
/// use watchkeeper_schema::yaml::{self, Place};
/// let places = yaml::places("a:\n  b: 1\n  c: [x, y]\n");
/// assert_eq!(places.of("/a/b"), Place { line: 2, column: 3 });
/// assert_eq!(places.of("/a/c/1"), Place { line: 3, column: 10 });
/// assert_eq!(places.of("/a/missing"), Place { line: 1, column: 1 });
/// ```
pub fn places(text: &str) -> Places {
    let mut walk = Walk { events: Parser::new_from_str(text), places: Places::default() };
    while let Some((event, _)) = walk.next() {
        if matches!(event, Event::DocumentStart(_)) {
            if let Some((event, at)) = walk.next() {
                // What cannot be read any further has no places.
                let _ = walk.value(String::new(), &event, at, at, MAX_DEPTH);
            }
            break;
        }
    }
    walk.places
}

struct Walk<'a> {
    events: Parser<'a, StrInput<'a>>,
    places: Places,
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Option<(Event<'a>, Place)> {
        let (event, span): (Event<'a>, Span) = self.events.next()?.ok()?;
        Some((event, Place { line: span.start.line(), column: span.start.col() + 1 }))
    }

    /// Takes a value that begins at `begin`, and is known by what is at `shown`.
    fn value(
        &mut self,
        pointer: String,
        event: &Event<'a>,
        shown: Place,
        begin: Place,
        depth: usize,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match event {
            Event::SequenceStart(..) => self.items(&pointer, depth)?,
            Event::MappingStart(..) => self.members(&pointer, depth)?,
            _ => {}
        }
        let place = if pointer.is_empty() { begin } else { shown };
        self.places.places.insert(pointer, place);
        Some(())
    }

    fn items(&mut self, pointer: &str, depth: usize) -> Option<()> {
        for index in 0.. {
            match self.next()? {
                (Event::SequenceEnd, _) => break,
                (event, at) => self.value(format!("{pointer}/{index}"), &event, at, at, depth)?,
            }
        }
        Some(())
    }

    fn members(&mut self, pointer: &str, depth: usize) -> Option<()> {
        loop {
            let (event, shown) = self.next()?;
            let name = match event {
                Event::MappingEnd => return Some(()),
                Event::Scalar(text, style, _, tag) => scalar(&text, style, tag).ok()?.into_key().ok()?.0,
                Event::Alias(_) => String::new(),
                _ => return None,
            };
            let (event, begin) = self.next()?;
            let escaped = name.replace('~', "~0").replace('/', "~1");
            self.value(format!("{pointer}/{escaped}"), &event, shown, begin, depth)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, pointer: &str) -> (usize, usize) {
        let place = places(text).of(pointer);
        (place.line, place.column)
    }

    #[test]
    fn members_are_where_their_names_are_and_items_where_they_begin() {
        let text = "# first\na: 1\nb:\n- c: [1, {d: 2}]\n  e/f: x\n- |\n  text\n";
        for (pointer, expected) in [
            ("", (2, 1)),
            ("/a", (2, 1)),
            ("/b", (3, 1)),
            ("/b/0", (4, 3)),
            ("/b/0/c", (4, 3)),
            ("/b/0/c/0", (4, 7)),
            ("/b/0/c/1/d", (4, 11)),
            ("/b/0/e~1f", (5, 3)),
            // A block of text begins with its first line.
            ("/b/1", (7, 3)),
            ("/b/0/missing/deeper", (4, 3)),
        ] {
            assert_eq!(place(text, pointer), expected, "{pointer}");
        }
    }

    #[test]
    fn what_cannot_be_read_has_the_places_before_the_mistake() {
        assert_eq!(place("a: 1\nb: [\n", "/a"), (1, 1));
        assert_eq!(place("", "/a"), (1, 1));
        assert_eq!(place(&"[".repeat(100_000), "/0/0"), (1, 1));
    }
}
