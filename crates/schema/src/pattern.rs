//! Patterns with the meaning they have in Go.
//!
//! The two dialects are close: both are without backtracking and look-around. What differs is rewritten before
//! compiling: `\d`, `\w`, `\s` and `\b` are ASCII in Go; `[` and `&&` have no meaning inside its classes; a brace that is
//! no repetition is a brace; `\Q...\E` quotes. What Go refuses and we can tell is refused in its words.

mod escape;

use escape::{escaped, in_class};
use regex::{Regex, RegexBuilder};
use std::collections::HashMap;

/// How often a repetition may repeat.
const MAX_REPEAT: u32 = 1000;

/// A regular expression as written, and compiled.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: Box<str>,
    compiled: Result<Regex, Box<str>>,
}

impl Pattern {
    fn compile(source: &str) -> Self {
        Self { source: source.into(), compiled: compile(source).map_err(Into::into) }
    }

    /// As written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the text contains a match, or why the pattern is none.
    pub(crate) fn matches(&self, text: &str) -> Result<bool, &str> {
        match &self.compiled {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(reason) => Err(reason),
        }
    }

    /// What is wrong with the pattern.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(|reason| &**reason)
    }
}

/// The patterns of one schema: equal ones are compiled once.
#[derive(Default)]
pub(crate) struct Patterns {
    known: HashMap<String, Pattern>,
}

impl Patterns {
    pub(crate) fn compile(&mut self, source: &str) -> Pattern {
        self.known.entry(source.into()).or_insert_with(|| Pattern::compile(source)).clone()
    }
}

fn compile(source: &str) -> Result<Regex, String> {
    let complain = |what: &str, part: &str| format!("error parsing regexp: {what}: `{part}`");
    let translated = Translator::new(source).translate().map_err(|(what, part)| complain(what, &part))?;
    RegexBuilder::new(&translated).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => complain("expression too large", source),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            complain(last.trim_start_matches("error: "), source)
        }
    })
}

/// What is wrong and the part of the pattern that is.
type Problem = (&'static str, String);

struct Translator<'a> {
    source: &'a str,
    rest: &'a str,
    out: String,
    open_groups: usize,
    /// Whether a repetition may come next.
    repeatable: bool,
    /// Where the repetition that just ended began.
    repeated_from: Option<&'a str>,
}

impl<'a> Translator<'a> {
    fn new(source: &'a str) -> Self {
        Self {
            source,
            rest: source,
            out: String::with_capacity(source.len() + 16),
            open_groups: 0,
            repeatable: false,
            repeated_from: None,
        }
    }

    fn translate(mut self) -> Result<String, Problem> {
        while let Some(char) = self.rest.chars().next() {
            match char {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.open()?,
                ')' => self.close()?,
                '*' | '+' | '?' => self.repeat(1)?,
                '{' => match repetition(self.rest) {
                    Some(length) => self.repeat(length)?,
                    None => self.literal("\\{", 1),
                },
                '|' => {
                    self.literal("|", 1);
                    self.repeatable = false;
                }
                _ => self.literal(&self.rest[..char.len_utf8()], char.len_utf8()),
            }
        }
        if self.open_groups > 0 {
            return Err(("missing closing )", self.source.into()));
        }
        Ok(self.out)
    }

    /// Writes something that can be repeated, for `length` bytes of the source.
    fn literal(&mut self, text: &str, length: usize) {
        self.out.push_str(text);
        self.rest = &self.rest[length..];
        self.repeatable = true;
        self.repeated_from = None;
    }

    fn repeat(&mut self, length: usize) -> Result<(), Problem> {
        let operator = &self.rest[..length];
        let lazy = usize::from(self.rest[length..].starts_with('?'));
        if !self.repeatable {
            let operator = &self.rest[..length + lazy];
            return Err(("missing argument to repetition operator", operator.into()));
        }
        if let Some(from) = self.repeated_from {
            let end = from.len() - self.rest.len() + length + lazy;
            return Err(("invalid nested repetition operator", from[..end].into()));
        }
        if operator.starts_with('{') && !repeats_sensibly(operator) {
            return Err(("invalid repeat count", operator.into()));
        }
        let from = self.rest;
        self.literal(&from[..length + lazy], length + lazy);
        self.repeated_from = Some(from);
        Ok(())
    }

    fn open(&mut self) -> Result<(), Problem> {
        self.open_groups += 1;
        let Some(after) = self.rest.strip_prefix("(?") else {
            self.literal("(", 1);
            self.repeatable = false;
            return Ok(());
        };
        let name = after.strip_prefix("P<").or_else(|| after.strip_prefix('<'));
        if let Some(name) = name {
            let end = name.find('>').filter(|end| {
                *end > 0 && name[..*end].chars().all(|char| char == '_' || char.is_ascii_alphanumeric())
            });
            let Some(end) = end else {
                let to = self.rest.find('>').map_or(self.rest.len(), |at| at + 1);
                return Err(("invalid named capture", self.rest[..to].into()));
            };
            // The name is of no use to anybody, and Go does not mind one given twice.
            self.literal("(", self.rest.len() - name.len() + end + 1);
            self.repeatable = false;
            return Ok(());
        }
        let end = after.find(|char| !matches!(char, 'i' | 'm' | 's' | 'U' | '-'));
        match end.map(|end| (end, after.as_bytes()[end])) {
            Some((end, b':')) => self.literal(&self.rest[..end + 3], end + 3),
            Some((end, b')')) => {
                let repeatable = self.repeatable;
                self.open_groups -= 1;
                self.literal(&self.rest[..end + 3], end + 3);
                self.repeatable = repeatable;
                return Ok(());
            }
            Some((end, _)) => {
                let bad = after[end..].chars().next().map_or(0, char::len_utf8);
                return Err(("invalid or unsupported Perl syntax", self.rest[..2 + end + bad].into()));
            }
            None => return Err(("missing closing )", self.source.into())),
        }
        self.repeatable = false;
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        if self.open_groups == 0 {
            return Err(("unexpected )", self.source.into()));
        }
        self.open_groups -= 1;
        self.literal(")", 1);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Problem> {
        if let Some(quoted) = self.rest.strip_prefix("\\Q") {
            let end = quoted.find("\\E");
            let text = &quoted[..end.unwrap_or(quoted.len())];
            let length = 2 + text.len() + end.map_or(0, |_| 2);
            self.literal(&regex::escape(text), length);
            return Ok(());
        }
        let (length, text) = match self.rest.as_bytes().get(1) {
            Some(b'b') => (2, "(?-u:\\b)".to_owned()),
            Some(b'B') => (2, "(?-u:\\B)".to_owned()),
            Some(b'A' | b'z') => (2, self.rest[..2].to_owned()),
            _ => {
                let (length, text, _) = escaped(self.rest, false)?;
                (length, text)
            }
        };
        self.literal(&text, length);
        Ok(())
    }

    fn class(&mut self) -> Result<(), Problem> {
        let start = self.rest;
        let unclosed = || ("missing closing ]", String::from(start));
        let mut rest = &start[1..];
        let mut out = String::from("[");
        if let Some(after) = rest.strip_prefix('^') {
            out.push('^');
            rest = after;
        }
        let mut first = true;
        loop {
            let char = rest.chars().next().ok_or_else(unclosed)?;
            if char == ']' && !first {
                break;
            }
            first = false;
            if let Some(end) = rest.strip_prefix("[:").and_then(|posix| posix.find(":]")) {
                out.push_str(&rest[..end + 4]);
                rest = &rest[end + 4..];
                continue;
            }
            let (length, text, low) = class_member(rest)?;
            out.push_str(&text);
            let member = rest;
            rest = &rest[length..];
            let Some(low) = low else { continue };
            if rest.starts_with('-') && rest.len() > 1 && !rest.starts_with("-]") {
                let (length, text, high) = class_member(&rest[1..])?;
                let range = &member[..member.len() - rest.len() + 1 + length];
                match high {
                    Some(high) if high >= low => out.push_str(&format!("-{text}")),
                    _ => return Err(("invalid character class range", range.into())),
                }
                rest = &rest[1 + length..];
            }
        }
        out.push(']');
        let length = start.len() - rest.len() + 1;
        self.literal(&out, length);
        Ok(())
    }
}

/// One member of a class: its length in the source, its translation, and the character if it is a single one.
fn class_member(rest: &str) -> Result<(usize, String, Option<char>), Problem> {
    match rest.chars().next() {
        Some('\\') => escaped(rest, true),
        Some(char) => Ok((char.len_utf8(), in_class(char), Some(char))),
        None => Err(("missing closing ]", String::new())),
    }
}

/// The length of `{n}`, `{n,}` or `{n,m}` at the start of the text.
fn repetition(text: &str) -> Option<usize> {
    let end = text.find('}')?;
    let (low, high) = match text[1..end].split_once(',') {
        Some((low, high)) => (low, high),
        None => (&text[1..end], ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    // A leading zero makes it no number in Go, so the brace is a brace.
    let plain = |text: &str| text.len() < 2 || !text.starts_with('0');
    (!low.is_empty() && digits(low) && digits(high) && plain(low) && plain(high)).then_some(end + 1)
}

fn repeats_sensibly(operator: &str) -> bool {
    let inner = &operator[1..operator.len() - 1];
    let (low, high) = inner.split_once(',').unwrap_or((inner, inner));
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= MAX_REPEAT);
    match (number(low), high) {
        (Some(_), "") => true,
        (Some(low), high) => number(high).is_some_and(|high| low <= high),
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests;
