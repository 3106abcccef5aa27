//! The syntax of label selectors: text to tokens to requirements.
//!
//! A zero byte ends the word it follows, and ends the selector where a word would begin: so it is in Go, whose scanner
//! takes it for the end of its input.

use super::label::{Operator, Requirement};
use crate::field::{FieldError, Path};
use crate::names::label_key_problems;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    End,
    Word,
    Open,
    Close,
    Comma,
    Not,
    /// A comparison: `=`, `==`, `!=`, `>`, `<`.
    Sign(Operator),
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

/// Parses a selector; the error is the message for the client.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut tokens = Tokens { text, next: None };
    let mut requirements = Vec::new();
    loop {
        let first = tokens.peek();
        match first.kind {
            Kind::End => return Ok(requirements),
            Kind::Word | Kind::Not => {}
            _ => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", first.text)),
        }
        let requirement =
            requirement(&mut tokens).map_err(|error| format!("unable to parse requirement: {error}"))?;
        requirements.push(requirement);
        let then = tokens.take();
        match then.kind {
            Kind::End => return Ok(requirements),
            Kind::Comma => {}
            _ => return Err(format!("found '{}', expected: ',' or 'end of string'", then.text)),
        }
        let next = tokens.peek();
        if !matches!(next.kind, Kind::Word | Kind::Not) {
            return Err(format!("found '{}', expected: identifier after ','", next.text));
        }
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let mut token = tokens.take();
    let is_denied = token.kind == Kind::Not;
    if is_denied {
        token = tokens.take();
    }
    if token.kind != Kind::Word {
        return Err(format!("found '{}', expected: identifier", token.text));
    }
    let key = token.text.to_owned();
    let problems = label_key_problems(&key);
    if !problems.is_empty() {
        return Err(FieldError::invalid(&Path::root(), key, problems.join("; ")).to_string());
    }
    if is_denied {
        return Requirement::new(key, Operator::DoesNotExist, Vec::new());
    }
    if matches!(tokens.peek().kind, Kind::End | Kind::Comma) {
        return Requirement::new(key, Operator::Exists, Vec::new());
    }
    let operator = operator(tokens)?;
    let values = match operator {
        Operator::In | Operator::NotIn => set(tokens)?,
        _ => BTreeSet::from([single(tokens)?]),
    };
    Requirement::new(key, operator, values.into_iter().map(str::to_owned).collect())
}

fn operator(tokens: &mut Tokens<'_>) -> Result<Operator, String> {
    let token = tokens.take();
    match (token.kind, token.text) {
        (Kind::Sign(operator), _) => Ok(operator),
        (Kind::Word, "in") => Ok(Operator::In),
        (Kind::Word, "notin") => Ok(Operator::NotIn),
        (_, text) => Err(format!("found '{text}', expected: in, notin, =, ==, !=, gt, lt")),
    }
}

/// The value after a comparison; nothing is the empty value.
fn single<'a>(tokens: &mut Tokens<'a>) -> Result<&'a str, String> {
    if matches!(tokens.peek().kind, Kind::End | Kind::Comma) {
        return Ok("");
    }
    let token = tokens.take();
    match token.kind {
        Kind::Word => Ok(token.text),
        _ => Err(format!("found '{}', expected: identifier", token.text)),
    }
}

/// `(x,y)`: between, before and after commas, nothing is the empty value.
fn set<'a>(tokens: &mut Tokens<'a>) -> Result<BTreeSet<&'a str>, String> {
    let open = tokens.take();
    if open.kind != Kind::Open {
        return Err(format!("found '{}' expected: '('", open.text));
    }
    let first = tokens.peek();
    if !matches!(first.kind, Kind::Word | Kind::Comma | Kind::Close) {
        return Err(format!("found '{}', expected: ',', ')' or identifier", first.text));
    }
    let mut values = BTreeSet::new();
    let mut value = "";
    let mut is_after_word = false;
    loop {
        let token = tokens.take();
        match token.kind {
            Kind::Word if !is_after_word => (value, is_after_word) = (token.text, true),
            Kind::Comma | Kind::Close => {
                values.insert(std::mem::take(&mut value));
                is_after_word = false;
                if token.kind == Kind::Close {
                    return Ok(values);
                }
            }
            _ if is_after_word => return Err(format!("found '{}', expected: ',' or ')'", token.text)),
            _ => return Err(format!("found '{}', expected: ',', or identifier", token.text)),
        }
    }
}

/// The tokens of a text, read one at a time.
struct Tokens<'a> {
    text: &'a str,
    next: Option<Token<'a>>,
}

impl<'a> Tokens<'a> {
    fn peek(&mut self) -> Token<'a> {
        let token = self.take();
        self.next = Some(token);
        token
    }

    fn take(&mut self) -> Token<'a> {
        match self.next.take() {
            Some(token) => token,
            None => self.scan(),
        }
    }

    fn scan(&mut self) -> Token<'a> {
        self.text = self.text.trim_start_matches(is_blank);
        let sign = |operator| Kind::Sign(operator);
        let (kind, length) = match self.text.as_bytes() {
            [] | [0, ..] => (Kind::End, 0),
            [b'=', b'=', ..] => (sign(Operator::DoubleEquals), 2),
            [b'=', ..] => (sign(Operator::Equals), 1),
            [b'!', b'=', ..] => (sign(Operator::NotEquals), 2),
            [b'!', ..] => (Kind::Not, 1),
            [b'>', ..] => (sign(Operator::GreaterThan), 1),
            [b'<', ..] => (sign(Operator::LessThan), 1),
            [b'(', ..] => (Kind::Open, 1),
            [b')', ..] => (Kind::Close, 1),
            [b',', ..] => (Kind::Comma, 1),
            _ => return self.word(),
        };
        let (text, rest) = self.text.split_at(length);
        self.text = rest;
        Token { kind, text }
    }

    fn word(&mut self) -> Token<'a> {
        let ends = |char: char| is_blank(char) || "=!(),><\0".contains(char);
        let length = self.text.find(ends).unwrap_or(self.text.len());
        let (text, rest) = self.text.split_at(length);
        self.text = rest.strip_prefix('\0').unwrap_or(rest);
        Token { kind: Kind::Word, text }
    }
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r' | '\n')
}
