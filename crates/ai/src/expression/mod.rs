//! Expressions that change JSON: a part of jq that always comes to an end.
//!
//! Paths (`.a.b[0]`, `.list[].x` on the left of an assignment), literals, objects, lists, `|`, `//`, `or`, `and`, comparisons, `+ - * /`, assignments (`=`, `|=`, `+=`),
//! `if then elif else end`, and the functions `del`, `map`, `select`, `has`, `not`, `length`, `keys`, `type`, `tostring`, `tonumber`, `ascii_downcase`, `join`, `empty`.
//!
//! There are no definitions, no recursion and no generators: an expression has one result, or none (`empty`, `select`). It takes at most [`STEPS`] steps; to copy a
//! value costs as many steps as it has parts, so that neither time nor memory can be made to explode.

mod eval;
mod parse;

use serde_json::Value;

/// How many steps an expression may take.
pub const STEPS: u64 = 2_000_000;
/// How long an expression may be, in bytes.
pub const LENGTH: usize = 8_192;

/// An expression that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Node);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Literal(Value),
    Path(Box<Node>, Vec<Step>),
    /// `.`
    Input,
    Object(Vec<(Node, Node)>),
    List(Vec<Node>),
    Pipe(Box<Node>, Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Assign(Assignment, Vec<Step>, Box<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
    Delete(Vec<Vec<Step>>),
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Index(i64),
    /// All of a list or an object; on the left of assignments and in `del` only.
    Each,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Alternative,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Assignment {
    Set,
    Update,
    Add,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Map,
    Select,
    Has,
    Not,
    Length,
    Keys,
    Type,
    ToString,
    ToNumber,
    Downcase,
    Join,
    Empty,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and where.
    pub fn read(text: &str) -> Result<Self, String> {
        parse::read(text).map(Self)
    }

    /// What it makes of a value; `None` for nothing.
    ///
    /// # Errors
    ///
    /// Types that do not fit, or too many steps. Nothing of the value is repeated.
    pub fn apply(&self, input: &Value) -> Result<Option<Value>, String> {
        eval::apply(&self.0, input)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn apply(text: &str, input: Value) -> Result<Option<Value>, String> {
        Expression::read(text)?.apply(&input)
    }

    /// Every result is what jq 1.7 says.
    #[test]
    fn expressions_mean_what_they_mean_in_jq() {
        let input =
            json!({"a": {"b": [1, 2, 3]}, "t": "Text", "n": null, "tools": [{"f": {"s": true}}, {"f": {}}]});
        for (text, expected) in [
            (".", input.clone()),
            (".a.b[1]", json!(2)),
            (".a.b[-1]", json!(3)),
            (".a[\"b\"] | length", json!(3)),
            (".missing.deeper", Value::Null),
            (".n // \"other\"", json!("other")),
            (".t // \"other\" | ascii_downcase", json!("text")),
            ("{t, \"x\": .a.b, y: (1 + 2 * 3)}", json!({"t": "Text", "x": [1, 2, 3], "y": 7})),
            ("[.t, 1.5, -2]", json!(["Text", 1.5, -2])),
            (".a.b | map(select(. > 1)) | map(. * 10)", json!([20, 30])),
            ("if .n then 1 elif .t == \"Text\" then 2 else 3 end", json!(2)),
            ("if .n then 1 end | .t", json!("Text")),
            (".a.b |= map(. + 1) | .a", json!({"b": [2, 3, 4]})),
            (".new.deep = 1 | .new", json!({"deep": 1})),
            (".tools[].f.s = false | .tools", json!([{"f": {"s": false}}, {"f": {"s": false}}])),
            ("del(.a, .tools[0], .t) ", json!({"n": null, "tools": [{"f": {}}]})),
            (".t += \"!\" | .t", json!("Text!")),
            ("{} + {a: 1} + {a: 2}", json!({"a": 2})),
            ("[1] + [2] | join(\"-\")", json!("1-2")),
            ("has(\"a\") and (has(\"z\") | not)", json!(true)),
            (". | keys", json!(["a", "n", "t", "tools"])),
            (
                "[(.a | type), (.n | type), (\"7\" | tonumber), (7 | tostring)]",
                json!(["object", "null", 7, "7"]),
            ),
            ("1 < 2 and 2 <= 2 and 3 > 2 and 1 != 2 or false", json!(true)),
            ("10 / 4 - 1", json!(1.5)),
        ] {
            assert_eq!(apply(text, input.clone()), Ok(Some(expected)), "{text}");
        }
        assert_eq!(apply("select(.a)", json!({})), Ok(None));
        assert_eq!(apply("empty", json!({})), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            (".a |", "ends"),
            ("{a: }", "unexpected"),
            ("def f: f; f", "unexpected"),
            ("recurse", "not known"),
            ("1 = 2", "left"),
            (".[] | .a", "left of"),
            ("\"abc", "never closed"),
            (". @ .", "unexpected"),
        ] {
            let error =
                Expression::read(text).and_then(|expression| expression.apply(&json!({}))).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(Expression::read(&"(".repeat(5_000)).unwrap_err().contains("deep"));
        let error = apply(".a + 1", json!({"a": "canary"})).unwrap_err();
        assert!(error.contains("string and number") && !error.contains("canary"), "{error}");
        assert!(apply(".a.b", json!({"a": 7})).is_err());
    }

    #[test]
    fn an_expression_that_would_go_on_and_on_is_ended() {
        let doubled = vec!["{a: ., b: .}"; 100].join(" | ");
        assert!(apply(&doubled, json!(1)).unwrap_err().contains("steps"));
        let doubled = vec![". + ."; 100].join(" | ");
        assert!(apply(&doubled, json!("x")).unwrap_err().contains("steps"));
        let list: Vec<u32> = (0..2_000).collect();
        let squared = "{l: .} | .l[] |= 1 | .l";
        assert!(apply(squared, json!(list)).is_ok());
    }

    proptest! {
        #[test]
        fn reading_never_fails_badly(text in "[.a|\\[\\]{}()=+/<>, 0-9\"a-z]{0,60}") {
            if let Ok(expression) = Expression::read(&text) {
                let _ = expression.apply(&json!({"a": [1, {"b": "c"}]}));
            }
        }
    }
}
