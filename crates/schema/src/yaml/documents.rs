/// One document of a text that may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The number of the document in the text, from 1.
    pub number: usize,
    /// The number of lines before the document.
    pub lines_before: usize,
    /// The document, with the directives and the marker before it.
    pub text: &'a str,
}

/// Splits a text at the markers between documents, `---` and `...`. Parts that say nothing are left out and not counted.
///
/// No scalar can contain a marker, so that the split needs no parser, and a mistake in one document does not spoil the next one.
///
/// ```
/// use watchkeeper_schema::yaml;
/// let parts: Vec<_> = yaml::documents("# two\n---\na: 1\n---\n---\nb: [\n").collect();
/// assert_eq!(parts.iter().map(|part| (part.number, part.lines_before)).collect::<Vec<_>>(), [(1, 1), (2, 4)]);
/// assert!(yaml::read(parts[0].text).is_ok() && yaml::read(parts[1].text).is_err());
/// ```
pub fn documents(text: &str) -> impl Iterator<Item = Part<'_>> {
    Documents { rest: text, lines: 0, number: 0 }
}

struct Documents<'a> {
    rest: &'a str,
    /// How many lines come before the rest.
    lines: usize,
    number: usize,
}

impl<'a> Iterator for Documents<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        while !self.rest.is_empty() {
            let (length, lines, says_something) = measure(self.rest);
            let (text, rest) = self.rest.split_at(length);
            let lines_before = self.lines;
            self.rest = rest;
            self.lines += lines;
            if says_something {
                self.number += 1;
                return Some(Part { number: self.number, lines_before, text });
            }
        }
        None
    }
}

/// The bytes and lines of the first document, and whether there is anything in it.
fn measure(text: &str) -> (usize, usize, bool) {
    let (mut length, mut lines) = (0, 0);
    let (mut begun, mut directives, mut says_something) = (false, false, false);
    for line in text.split_inclusive('\n') {
        if is_marker(line, "---") {
            if says_something || begun || (length > 0 && !directives) {
                break;
            }
            begun = true;
            says_something |= !is_blank(&line[3..]);
        } else if is_marker(line, "...") {
            if length == 0 || says_something || begun {
                length += line.len();
                lines += 1;
            }
            break;
        } else if !begun && line.starts_with('%') {
            directives = true;
        } else {
            says_something |= !is_blank(line);
        }
        length += line.len();
        lines += 1;
    }
    (length, lines, says_something)
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(usize, usize, &str)> {
        documents(text).map(|part| (part.number, part.lines_before, part.text)).collect()
    }

    #[test]
    fn documents_are_split_at_markers_and_empty_ones_are_left_out() {
        assert_eq!(split("a: 1"), [(1, 0, "a: 1")]);
        assert_eq!(split("a\n---\nb\n"), [(1, 0, "a\n"), (2, 1, "---\nb\n")]);
        assert_eq!(split("---\na\n...\n# end\n"), [(1, 0, "---\na\n...\n")]);
        assert_eq!(
            split("---\r\na\r\n---\r\n\r\n---\r\nb\r\n"),
            [(1, 0, "---\r\na\r\n"), (2, 4, "---\r\nb\r\n")]
        );
        assert_eq!(split("--- a\n--- b\n"), [(1, 0, "--- a\n"), (2, 1, "--- b\n")]);
        assert_eq!(split("a: ---x\n----\n"), [(1, 0, "a: ---x\n----\n")]);
        assert_eq!(split(""), []);
        assert_eq!(split("# nothing\n---\n...\n...\n---"), []);
    }

    #[test]
    fn directives_belong_to_the_document_behind_them() {
        assert_eq!(split("%YAML 1.1\n---\na\n"), [(1, 0, "%YAML 1.1\n---\na\n")]);
        assert_eq!(split("a\n...\n%TAG ! x\n---\nb\n"), [(1, 0, "a\n...\n"), (2, 2, "%TAG ! x\n---\nb\n")]);
    }

    #[test]
    fn what_is_wrong_is_placed() {
        for (text, place) in [
            ("a: 1\nb: [1,\n", (3, 1)),
            ("a: 1\n  b: 2\n", (2, 4)),
            ("a: \u{7}\n", (1, 4)),
            ("a: &x [*x]\n", (1, 8)),
        ] {
            let misread = crate::yaml::read(text).unwrap_err();
            assert_eq!((misread.line, misread.column), place, "{text:?}: {misread}");
        }
        let doubled = crate::yaml::read("a: 1\nb:\n  c: 1\n  c: 2\n").unwrap().doubled;
        assert_eq!(doubled.iter().map(|key| (key.line, key.column)).collect::<Vec<_>>(), [(4, 6)]);
    }
}
