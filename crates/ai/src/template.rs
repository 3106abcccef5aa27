//! Templates of prompts: a small part of Jinja, strict and bounded.
//!
//! `{{ name.field }}` is a value, `{% for item in list %}...{% endfor %}` repeats, `{% if value %}...{% else %}...{% endif %}` decides. A name that is not
//! there is an error, not an empty text. A template takes at most [`STEPS`] steps and writes at most [`BYTES`] bytes.

use serde_json::Value;

/// How many steps a template may take.
pub const STEPS: usize = 100_000;
/// How much a template may write, in bytes.
pub const BYTES: usize = 1 << 20;
/// How deep blocks may be nested.
const DEPTH: usize = 32;

/// A template that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Node>);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Text(String),
    Value(Path),
    For { name: String, list: Path, body: Vec<Node> },
    If { condition: Path, then: Vec<Node>, otherwise: Vec<Node> },
}

type Path = Vec<String>;

/// What comes between two tags.
enum Token<'a> {
    Text(&'a str),
    Value(&'a str),
    Tag(&'a str),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let tokens = tokens(text)?;
        let mut at = 0;
        let (nodes, end) = block(&tokens, &mut at, 0)?;
        match end {
            None => Ok(Self(nodes)),
            Some(tag) => Err(format!("{{% {tag} %}} ends nothing")),
        }
    }

    /// The names that it needs.
    pub fn names(&self) -> Vec<String> {
        fn collect(nodes: &[Node], bound: &mut Vec<String>, names: &mut Vec<String>) {
            for node in nodes {
                let path = match node {
                    Node::Text(_) => continue,
                    Node::Value(path) | Node::For { list: path, .. } | Node::If { condition: path, .. } => {
                        path
                    }
                };
                if let Some(first) =
                    path.first().filter(|first| !bound.contains(first) && !names.contains(first))
                {
                    names.push(first.clone());
                }
                match node {
                    Node::For { name, body, .. } => {
                        bound.push(name.clone());
                        collect(body, bound, names);
                        bound.pop();
                    }
                    Node::If { then, otherwise, .. } => {
                        collect(then, bound, names);
                        collect(otherwise, bound, names);
                    }
                    Node::Text(_) | Node::Value(_) => {}
                }
            }
        }
        let mut names = Vec::new();
        collect(&self.0, &mut Vec::new(), &mut names);
        names
    }

    /// Writes it with these values.
    ///
    /// # Errors
    ///
    /// A name that is not there, or a template that takes too many steps or writes too much.
    pub fn render(&self, input: &Value) -> Result<String, String> {
        let mut renderer = Renderer { input, bound: Vec::new(), out: String::new(), steps: 0 };
        renderer.nodes(&self.0)?;
        Ok(renderer.out)
    }
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(begin) = rest.find("{{").into_iter().chain(rest.find("{%")).min() {
        if begin > 0 {
            tokens.push(Token::Text(&rest[..begin]));
        }
        let is_value = rest[begin..].starts_with("{{");
        let close = if is_value { "}}" } else { "%}" };
        let inner = &rest[begin + 2..];
        let end = inner
            .find(close)
            .ok_or_else(|| format!("{} is never closed with {close}", &rest[begin..begin + 2]))?;
        let inside = inner[..end].trim();
        tokens.push(if is_value { Token::Value(inside) } else { Token::Tag(inside) });
        rest = &inner[end + 2..];
    }
    if !rest.is_empty() {
        tokens.push(Token::Text(rest));
    }
    Ok(tokens)
}

fn path(text: &str) -> Result<Path, String> {
    let is_name = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    match text.split('.').all(is_name) {
        true => Ok(text.split('.').map(str::to_owned).collect()),
        false => Err(format!("{text:?} is not a name such as city or user.name")),
    }
}

/// Reads up to the tag that ends the block, and says which it is.
fn block<'a>(
    tokens: &[Token<'a>],
    at: &mut usize,
    depth: usize,
) -> Result<(Vec<Node>, Option<&'a str>), String> {
    if depth > DEPTH {
        return Err(format!("blocks are nested deeper than {DEPTH} levels"));
    }
    let mut nodes = Vec::new();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        let tag = match token {
            Token::Text(text) => {
                nodes.push(Node::Text((*text).to_owned()));
                continue;
            }
            Token::Value(inside) => {
                nodes.push(Node::Value(path(inside)?));
                continue;
            }
            Token::Tag(tag) => *tag,
        };
        let words: Vec<&str> = tag.split_whitespace().collect();
        match words.as_slice() {
            ["if", condition] => {
                let condition = path(condition)?;
                let (then, end) = block(tokens, at, depth + 1)?;
                let (otherwise, end) = match end {
                    Some("else") => block(tokens, at, depth + 1)?,
                    end => (Vec::new(), end),
                };
                if end != Some("endif") {
                    return Err("{% if %} is never ended with {% endif %}".to_owned());
                }
                nodes.push(Node::If { condition, then, otherwise });
            }
            ["for", name, "in", list] => {
                let (name, list) = (path(name)?.join("."), path(list)?);
                let (body, end) = block(tokens, at, depth + 1)?;
                if end != Some("endfor") {
                    return Err("{% for %} is never ended with {% endfor %}".to_owned());
                }
                nodes.push(Node::For { name, list, body });
            }
            ["else" | "endif" | "endfor"] => return Ok((nodes, Some(tag))),
            _ => {
                return Err(format!(
                    "{{% {tag} %}} is not known: if NAME, else, endif, for NAME in NAME, endfor are"
                ));
            }
        }
    }
    Ok((nodes, None))
}

struct Renderer<'a> {
    input: &'a Value,
    bound: Vec<(&'a str, &'a Value)>,
    out: String,
    steps: usize,
}

impl<'a> Renderer<'a> {
    fn nodes(&mut self, nodes: &'a [Node]) -> Result<(), String> {
        for node in nodes {
            self.step()?;
            match node {
                Node::Text(text) => self.write(text)?,
                Node::Value(path) => match self.value(path)? {
                    Value::String(text) => self.write(text)?,
                    Value::Null => return Err(format!("{} is null", path.join("."))),
                    other => self.write(&other.to_string())?,
                },
                Node::If { condition, then, otherwise } => {
                    let is_true = match self.value(condition) {
                        Ok(Value::Null | Value::Bool(false)) => false,
                        Ok(Value::String(text)) => !text.is_empty(),
                        Ok(Value::Array(items)) => !items.is_empty(),
                        Ok(_) => true,
                        // To ask whether something is there is what a condition is for.
                        Err(_) => false,
                    };
                    self.nodes(if is_true { then } else { otherwise })?;
                }
                Node::For { name, list, body } => {
                    let Value::Array(items) = self.value(list)? else {
                        return Err(format!("{} is not a list", list.join(".")));
                    };
                    for item in items {
                        self.step()?;
                        self.bound.push((name, item));
                        self.nodes(body)?;
                        self.bound.pop();
                    }
                }
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > STEPS { Err(format!("the template takes more than {STEPS} steps")) } else { Ok(()) }
    }

    fn write(&mut self, text: &str) -> Result<(), String> {
        if self.out.len() + text.len() > BYTES {
            return Err(format!("the template writes more than {BYTES} bytes"));
        }
        self.out.push_str(text);
        Ok(())
    }

    fn value(&self, path: &[String]) -> Result<&'a Value, String> {
        let missing = || format!("{} is not there", path.join("."));
        let (first, rest) = path.split_first().ok_or_else(missing)?;
        let bound = self.bound.iter().rev().find(|(name, _)| name == first).map(|(_, value)| *value);
        let mut value = bound.or_else(|| self.input.get(first.as_str())).ok_or_else(missing)?;
        for part in rest {
            let next = value.get(part.as_str()).or_else(|| value.get(part.parse::<usize>().ok()?));
            value = next.ok_or_else(missing)?;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(text: &str, input: Value) -> Result<String, String> {
        Template::read(text)?.render(&input)
    }

    #[test]
    fn values_lists_and_conditions_are_written() {
        let text = "Hi {{ user.name }}{% if loud %}!{% else %}.{% endif %}{% for item in items %} {{item.id}}{% endfor %}";
        let input =
            json!({"user": {"name": "Jo {{ loud }}"}, "loud": true, "items": [{"id": 1}, {"id": 2.5}]});
        assert_eq!(render(text, input), Ok("Hi Jo {{ loud }}! 1 2.5".into()), "values are not templates");
        assert_eq!(render("{% if a %}x{% endif %}y", json!({})), Ok("y".into()));
        assert_eq!(Template::read(text).unwrap().names(), ["user", "loud", "items"]);
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert_eq!(render("{{ a.b }}", json!({"a": {}})), Err("a.b is not there".into()));
        assert_eq!(render("{{ a }}", json!({"a": null})), Err("a is null".into()));
        assert!(render("{% for x in a %}{% endfor %}", json!({"a": 1})).is_err());
        for wrong in [
            "{{ a",
            "{% if a %}",
            "{% endif %}",
            "{{ a() }}",
            "{% include 'x' %}",
            "{% for a in b %}{% endif %}",
        ] {
            assert!(Template::read(wrong).is_err(), "{wrong}");
        }
        let deep = "{% if a %}".repeat(100) + &"{% endif %}".repeat(100);
        assert!(Template::read(&deep).unwrap_err().contains("deeper"));
    }

    #[test]
    fn a_template_that_goes_on_and_on_is_ended() {
        let list: Vec<u32> = (0..1_000).collect();
        let loops = "{% for a in l %}{% for b in l %}{% for c in l %}{% endfor %}{% endfor %}{% endfor %}";
        assert!(render(loops, json!({"l": list})).unwrap_err().contains("steps"));
        let long = "{% for a in l %}{{ t }}{% endfor %}";
        assert!(render(long, json!({"l": list, "t": "x".repeat(10_000)})).unwrap_err().contains("bytes"));
    }
}
