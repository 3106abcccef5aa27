//! From text to nodes. The grammar is what Go's parser accepts, which is more than anyone would write down.

use super::{Filter, Node, Operator, Slice};
use serde_json::Value;

type Parsed<T> = Result<T, String>;

/// Parses `{text}` and gives the nodes of its first pair of braces.
///
/// A brace inside the text ends that pair; what follows is parsed as well, because it may be wrong, and then forgotten.
pub(super) fn action(text: &str) -> Parsed<Vec<Node>> {
    let braced = format!("{{{text}}}");
    let mut parser = Parser { rest: &braced };
    let mut first = None;
    while let Some(open) = parser.rest.find('{') {
        parser.rest = &parser.rest[open + 1..];
        let nodes = parser.inside()?;
        first.get_or_insert(nodes);
    }
    Ok(first.unwrap_or_default())
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Everything up to and with the closing brace.
    fn inside(&mut self) -> Parsed<Vec<Node>> {
        let mut nodes = Vec::new();
        loop {
            if self.skip("}") {
                return Ok(nodes);
            } else if self.skip("[?(") {
                nodes.push(self.filter()?);
            } else if self.skip("..") {
                if nodes.last() == Some(&Node::Recursive) {
                    return Err("invalid multiple recursive descent".into());
                }
                nodes.push(Node::Recursive);
                if self.rest.starts_with(is_alphanumeric) {
                    nodes.push(self.field());
                }
            } else {
                self.one(&mut nodes)?;
            }
        }
    }

    /// What one character tells apart.
    fn one(&mut self, nodes: &mut Vec<Node>) -> Parsed<()> {
        let before = self.rest;
        let Some(char) = self.next() else {
            return Err("unclosed action".into());
        };
        match char {
            '\r' | '\n' => return Err("unclosed action".into()),
            // The current object and the root are the same here: where the path has come to.
            ' ' | '@' | '$' => {}
            '[' => self.array(nodes)?,
            '"' | '\'' => {
                self.rest = before;
                nodes.push(self.quoted(char)?);
            }
            '.' => nodes.push(self.field()),
            '+' | '-' => {
                self.rest = before;
                nodes.push(self.number()?);
            }
            _ if is_digit(char) => {
                self.rest = before;
                nodes.push(self.number()?);
            }
            _ if is_alphanumeric(char) => {
                self.rest = before;
                nodes.push(self.word());
            }
            _ => return Err(format!("unrecognized character in action: U+{:04X} '{char}'", u32::from(char))),
        }
        Ok(())
    }

    fn skip(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let char = chars.next();
        self.rest = chars.as_str();
        char
    }

    /// Takes the first `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// A name up to something that ends it and has no backslash before it.
    fn field(&mut self) -> Node {
        let mut escaped = false;
        let end = self.rest.find(|char| {
            let ends = !escaped && is_terminator(char);
            escaped = !escaped && char == '\\';
            ends
        });
        match self.take(end.unwrap_or(self.rest.len())) {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "").into()),
        }
    }

    fn word(&mut self) -> Node {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        match self.take(end) {
            "true" => Node::Literal(true.into()),
            "false" => Node::Literal(false.into()),
            _ => Node::Word,
        }
    }

    fn number(&mut self) -> Parsed<Node> {
        let signed = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[signed..].find(|char| char != '.' && !is_digit(char));
        let text = self.take(digits.map_or(self.rest.len(), |digits| signed + digits));
        if let Ok(integer) = text.parse::<i64>() {
            return Ok(Node::Literal(integer.into()));
        }
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Node::Literal(float.into())),
            _ => Err(format!("cannot parse number {text}")),
        }
    }

    /// A string in quotes, the opening one still ahead.
    fn quoted(&mut self, quote: char) -> Parsed<Node> {
        let unterminated = || "unterminated quoted string".to_owned();
        let mut before = '\0';
        let mut length = None;
        for (at, char) in self.rest.char_indices().skip(1) {
            if char == '\n' {
                return Err(unterminated());
            }
            if char == quote && before != '\\' {
                length = Some(at + 1);
                break;
            }
            before = char;
        }
        let text = self.take(length.ok_or_else(unterminated)?);
        let inner = &text[1..text.len() - 1];
        match watchkeeper_go::quote::unquote(inner, quote) {
            Some(text) => Ok(Node::Text(Value::String(text))),
            None => Err(format!("unquote string {text} error invalid syntax")),
        }
    }

    /// What stands in brackets, the opening one taken.
    fn array(&mut self, nodes: &mut Vec<Node>) -> Parsed<()> {
        let end = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']'));
        let Some(end) = end else {
            return Err("unterminated array".into());
        };
        let text = self.take(end);
        self.rest = &self.rest[1..];
        if text.contains(',') {
            let parts = text.split(',').map(|part| action(&format!("[{}]", part.trim_matches(' '))));
            nodes.push(Node::Union(parts.collect::<Parsed<_>>()?));
        } else if let Some(key) = quoted_key(text) {
            nodes.extend(action(&format!(".{key}"))?);
        } else {
            nodes.push(Node::Slice(slice(text)?));
        }
        Ok(())
    }

    /// What stands in `[?(` and `)]`, the opening taken.
    fn filter(&mut self) -> Parsed<Node> {
        let end = self.filter_end().ok_or("unterminated filter")?;
        let text = self.take(end);
        self.rest = &self.rest[1..];
        if !self.skip("]") {
            return Err("unclosed array expect ]".into());
        }
        let Some((left, operator, right)) = comparison(text) else {
            return Ok(Node::Filter(Filter { left: action(text)?, right: None }));
        };
        let operator = match operator {
            "<" => Operator::Less,
            ">" => Operator::Greater,
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<=" => Operator::LessEqual,
            ">=" => Operator::GreaterEqual,
            _ => Operator::Unknown,
        };
        Ok(Node::Filter(Filter { left: action(left)?, right: Some((operator, action(right)?)) }))
    }

    /// Where the parenthesis closes: not between the quotes of the first quoted string.
    fn filter_end(&self) -> Option<usize> {
        let (mut opened, mut closed) = (None, false);
        let mut before = '\0';
        for (at, char) in self.rest.char_indices() {
            match char {
                '\n' => return None,
                '"' | '\'' => match opened {
                    None => opened = Some(char),
                    Some(quote) if quote == char && before != '\\' => closed = true,
                    Some(_) => {}
                },
                ')' if opened.is_some() == closed => return Some(at),
                _ => {}
            }
            before = char;
        }
        None
    }
}

/// Left, operator and right of a comparison, none of them empty.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    const SIGNS: [char; 4] = ['!', '<', '>', '='];
    let start = text.find(SIGNS).filter(|start| *start > 0)?;
    let (left, rest) = text.split_at(start);
    let signs = rest.find(|char| !SIGNS.contains(&char)).unwrap_or(rest.len());
    // With nothing after the signs, the last of them is what is compared with.
    let signs = if signs == rest.len() { signs - 1 } else { signs };
    let (operator, right) = rest.split_at(signs);
    (!operator.is_empty()).then_some((left, operator, right))
}

/// The key in `'key'`, which has no quotes itself.
fn quoted_key(text: &str) -> Option<&str> {
    let key = text.strip_prefix('\'')?.strip_suffix('\'')?;
    (!key.contains('\'')).then_some(key)
}

/// `start:end:step`, each of which may be missing, and so may be the colons.
fn slice(text: &str) -> Parsed<Slice> {
    let wrong = || format!("invalid array index {text}");
    let mut parts = (if text == "*" { ":" } else { text }).split(':');
    let start = parts.next().unwrap_or_default();
    let (end, step) = (parts.next(), parts.next());
    let shaped =
        |part: &str| part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit());
    if parts.next().is_some() || ![Some(start), end, step].into_iter().flatten().all(shaped) {
        return Err(wrong());
    }
    let number = |part: &str| match part {
        "" => Ok(None),
        _ => part.parse().map(Some).map_err(|_| format!("array index {part} is not a number")),
    };
    let start = number(start)?;
    Ok(match end {
        None => Slice { start, end: Some(start.unwrap_or(0).saturating_add(1)), single: true, step: None },
        Some(end) => {
            Slice { start, end: number(end)?, single: false, step: number(step.unwrap_or_default())? }
        }
    })
}

fn is_terminator(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_alphanumeric(char: char) -> bool {
    char == '_' || char.is_alphabetic() || is_digit(char)
}

fn is_digit(char: char) -> bool {
    char.is_ascii_digit() || (!char.is_ascii() && char.is_numeric())
}
