use serde_json::Value;

use super::{Assignment, Function, LENGTH, Node, Operator, Step};

/// How deep expressions may be nested.
const DEPTH: usize = 64;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Text(String),
    Number(f64),
    /// A name, also one of a keyword.
    Name(String),
    /// `.name`
    Field(String),
    Symbol(&'static str),
}

const SYMBOLS: [&str; 26] = [
    "//", "|=", "+=", "==", "!=", "<=", ">=", "|", "=", "<", ">", "+", "-", "*", "/", "(", ")", "[", "]",
    "{", "}", ",", ":", "?", ".", ";",
];

pub(super) fn read(text: &str) -> Result<Node, String> {
    if text.len() > LENGTH {
        return Err(format!("is longer than {LENGTH} bytes"));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let node = parser.pipe()?;
    match parser.tokens.get(parser.at) {
        None => Ok(node),
        Some(token) => Err(format!("unexpected {}", shown(token))),
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Text(text) => format!("{text:?}"),
        Token::Number(number) => number.to_string(),
        Token::Name(name) => name.clone(),
        Token::Field(name) => format!(".{name}"),
        Token::Symbol(symbol) => (*symbol).to_owned(),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let name_end = |text: &str| {
            text.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).unwrap_or(text.len())
        };
        let (token, length) = if first == '"' {
            string(rest)?
        } else if first.is_ascii_digit() {
            let end =
                rest.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(rest.len());
            let number = rest[..end].parse().map_err(|_| format!("{:?} is not a number", &rest[..end]))?;
            (Token::Number(number), end)
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = name_end(rest);
            (Token::Name(rest[..end].to_owned()), end)
        } else if first == '.'
            && rest[1..].starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        {
            let end = name_end(&rest[1..]);
            (Token::Field(rest[1..=end].to_owned()), end + 1)
        } else {
            let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
            let symbol = symbol.ok_or_else(|| format!("unexpected {first:?}"))?;
            (Token::Symbol(symbol), symbol.len())
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// A text in quotes at the beginning of this, and how long it is there.
fn string(rest: &str) -> Result<(Token, usize), String> {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => {
                let text = serde_json::from_str::<String>(&rest[..=at]);
                return text
                    .map(|text| (Token::Text(text), at + 1))
                    .map_err(|_| "a text has an escape that is not known".to_owned());
            }
            _ => at += 1,
        }
    }
    Err("a text is never closed with \"".to_owned())
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn is(&self, symbol: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Symbol(found)) if *found == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(&format!("{symbol} is expected"))) }
    }

    fn keyword(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(found)) if found == word);
        self.at += usize::from(found);
        found
    }

    fn unexpected(&self, but: &str) -> String {
        match self.tokens.get(self.at) {
            Some(token) => format!("unexpected {}: {but}", shown(token)),
            None => format!("ends where {but}"),
        }
    }

    fn pipe(&mut self) -> Result<Node, String> {
        let mut stages = vec![self.alternative()?];
        while self.take("|") {
            stages.push(self.alternative()?);
        }
        let mut stages = stages.into_iter();
        let first = stages.next().unwrap_or(Node::Input);
        Ok(stages.fold(first, |before, next| Node::Pipe(Box::new(before), Box::new(next))))
    }

    fn alternative(&mut self) -> Result<Node, String> {
        let mut all = vec![self.assignment()?];
        while self.take("//") {
            all.push(self.assignment()?);
        }
        let last = all.pop().unwrap_or(Node::Input);
        let join = |later, earlier| Node::Binary(Operator::Alternative, Box::new(earlier), Box::new(later));
        Ok(all.into_iter().rev().fold(last, join))
    }

    fn assignment(&mut self) -> Result<Node, String> {
        let left = self.binary(0)?;
        let assignment = if self.take("=") {
            Assignment::Set
        } else if self.take("|=") {
            Assignment::Update
        } else if self.take("+=") {
            Assignment::Add
        } else {
            return Ok(left);
        };
        let path = path_of(left)?;
        Ok(Node::Assign(assignment, path, Box::new(self.binary(0)?)))
    }

    fn operator(&mut self, level: u8) -> Option<Operator> {
        let known: &[(&str, Operator)] = match level {
            2 => &[
                ("==", Operator::Equal),
                ("!=", Operator::NotEqual),
                ("<=", Operator::LessOrEqual),
                (">=", Operator::GreaterOrEqual),
                ("<", Operator::Less),
                (">", Operator::Greater),
            ],
            3 => &[("+", Operator::Add), ("-", Operator::Subtract)],
            4 => &[("*", Operator::Multiply), ("/", Operator::Divide)],
            0 => return self.keyword("or").then_some(Operator::Or),
            _ => return self.keyword("and").then_some(Operator::And),
        };
        known.iter().find(|(symbol, _)| self.take(symbol)).map(|(_, operator)| *operator)
    }

    fn binary(&mut self, level: u8) -> Result<Node, String> {
        if level > 4 {
            return self.postfix();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            let right = self.binary(level + 1)?;
            left = Node::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn postfix(&mut self) -> Result<Node, String> {
        let mut node = self.primary()?;
        loop {
            let step = if let Some(Token::Field(name)) = self.tokens.get(self.at).cloned() {
                self.at += 1;
                Step::Key(name)
            } else if self.is("[")
                || self.is(".") && matches!(self.tokens.get(self.at + 1), Some(Token::Symbol("[")))
            {
                self.take(".");
                self.at += 1;
                self.index()?
            } else if self.take("?") {
                continue;
            } else {
                return Ok(node);
            };
            node = match node {
                Node::Path(from, mut steps) => {
                    steps.push(step);
                    Node::Path(from, steps)
                }
                other => Node::Path(Box::new(other), vec![step]),
            };
        }
    }

    /// What is between brackets, and the closing one.
    fn index(&mut self) -> Result<Step, String> {
        if self.take("]") {
            return Ok(Step::Each);
        }
        let is_negative = self.take("-");
        let step = match self.tokens.get(self.at) {
            Some(Token::Number(number)) => {
                Step::Index(if is_negative { -*number as i64 } else { *number as i64 })
            }
            Some(Token::Text(name)) if !is_negative => Step::Key(name.clone()),
            _ => return Err(self.unexpected("a number or a text is expected")),
        };
        self.at += 1;
        self.expect("]")?;
        Ok(step)
    }

    fn primary(&mut self) -> Result<Node, String> {
        self.enter()?;
        let node = self.value()?;
        self.depth -= 1;
        Ok(node)
    }

    /// Goes one level deeper, if that is allowed.
    fn enter(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH {
            Err(format!("is nested too deep: {DEPTH} levels are allowed"))
        } else {
            Ok(())
        }
    }

    fn value(&mut self) -> Result<Node, String> {
        let Some(token) = self.tokens.get(self.at).cloned() else {
            return Err(self.unexpected("a value is expected"));
        };
        self.at += 1;
        Ok(match token {
            Token::Text(text) => Node::Literal(text.into()),
            Token::Number(number) => Node::Literal(super::eval::number(number)),
            Token::Field(name) => Node::Path(Box::new(Node::Input), vec![Step::Key(name)]),
            Token::Symbol(".") => Node::Input,
            Token::Symbol("-") => {
                let negated = self.postfix()?;
                Node::Binary(Operator::Subtract, Box::new(Node::Literal(0.into())), Box::new(negated))
            }
            Token::Symbol("(") => {
                let inner = self.pipe()?;
                self.expect(")")?;
                inner
            }
            Token::Symbol("[") => {
                let mut items = Vec::new();
                while !self.take("]") {
                    items.push(self.pipe()?);
                    if !self.is("]") {
                        self.expect(",")?;
                    }
                }
                Node::List(items)
            }
            Token::Symbol("{") => self.object()?,
            Token::Name(name) => self.name(&name)?,
            Token::Symbol(_) => {
                self.at -= 1;
                return Err(self.unexpected("a value is expected"));
            }
        })
    }

    fn object(&mut self) -> Result<Node, String> {
        let mut fields = Vec::new();
        while !self.take("}") {
            let token = self.tokens.get(self.at).cloned();
            self.at += 1;
            let (key, shorthand) = match token {
                Some(Token::Name(name)) => (Node::Literal(name.as_str().into()), Some(name)),
                Some(Token::Text(text)) => (Node::Literal(text.as_str().into()), Some(text)),
                Some(Token::Symbol("(")) => {
                    let key = self.pipe()?;
                    self.expect(")")?;
                    (key, None)
                }
                _ => {
                    self.at -= 1;
                    return Err(self.unexpected("the name of a field is expected"));
                }
            };
            let value = match (self.take(":"), shorthand) {
                (true, _) => self.alternative()?,
                (false, Some(name)) => Node::Path(Box::new(Node::Input), vec![Step::Key(name)]),
                (false, None) => return Err(self.unexpected(": is expected")),
            };
            fields.push((key, value));
            if !self.is("}") {
                self.expect(",")?;
            }
        }
        Ok(Node::Object(fields))
    }

    fn name(&mut self, name: &str) -> Result<Node, String> {
        let function = match name {
            "null" => return Ok(Node::Literal(Value::Null)),
            "true" => return Ok(Node::Literal(true.into())),
            "false" => return Ok(Node::Literal(false.into())),
            "if" => return self.condition(),
            "del" => {
                self.expect("(")?;
                let mut paths = Vec::new();
                loop {
                    let path = self.pipe()?;
                    paths.push(path_of(path)?);
                    if !self.take(",") {
                        break;
                    }
                }
                self.expect(")")?;
                return Ok(Node::Delete(paths));
            }
            "map" => Function::Map,
            "select" => Function::Select,
            "has" => Function::Has,
            "join" => Function::Join,
            "not" => Function::Not,
            "length" => Function::Length,
            "keys" => Function::Keys,
            "type" => Function::Type,
            "tostring" => Function::ToString,
            "tonumber" => Function::ToNumber,
            "ascii_downcase" => Function::Downcase,
            "empty" => Function::Empty,
            "def" | "reduce" | "foreach" | "label" | "import" | "include" | "then" | "else" | "elif"
            | "end" | "and" | "or" => {
                self.at -= 1;
                return Err(self.unexpected("a value is expected"));
            }
            other => return Err(format!("{other} is not known here")),
        };
        let mut arguments = Vec::new();
        if matches!(function, Function::Map | Function::Select | Function::Has | Function::Join) {
            self.expect("(")?;
            arguments.push(self.pipe()?);
            self.expect(")")?;
        }
        Ok(Node::Call(function, arguments))
    }

    /// After `if` or `elif`.
    fn condition(&mut self) -> Result<Node, String> {
        let condition = self.pipe()?;
        if !self.keyword("then") {
            return Err(self.unexpected("then is expected"));
        }
        let then = self.pipe()?;
        let otherwise = if self.keyword("elif") {
            self.enter()?;
            let node = self.condition()?;
            self.depth -= 1;
            return Ok(Node::If(Box::new(condition), Box::new(then), Box::new(node)));
        } else if self.keyword("else") {
            self.pipe()?
        } else {
            Node::Input
        };
        if !self.keyword("end") {
            return Err(self.unexpected("end is expected"));
        }
        Ok(Node::If(Box::new(condition), Box::new(then), Box::new(otherwise)))
    }
}

/// The steps of what is on the left of an assignment.
fn path_of(node: Node) -> Result<Vec<Step>, String> {
    match node {
        Node::Input => Ok(Vec::new()),
        Node::Path(from, steps) if *from == Node::Input => Ok(steps),
        _ => {
            Err("on the left of an assignment, and in del, there has to be a path such as .a.b[0]".to_owned())
        }
    }
}
