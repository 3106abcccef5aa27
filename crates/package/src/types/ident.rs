//! Names of fields and values as names in Rust.

use crate::walk;

/// Words of Rust that can be names behind `r#`.
const WORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
/// Words that cannot.
const NEVER: &[&str] = &["crate", "self", "Self", "super", "_"];

/// The name of a field: `maxSize` is `max_size`, `type` is `r#type`, `$ref` is `ref_`.
pub(crate) fn field(name: &str) -> String {
    let plain: String =
        name.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '_' }).collect();
    let snake = walk::rust(&plain);
    let snake = snake.trim_matches('_');
    let begins_well = snake.starts_with(|first: char| first.is_ascii_alphabetic());
    match snake {
        "" => "field".to_owned(),
        _ if !begins_well => format!("n{snake}"),
        word if NEVER.contains(&word) => format!("{word}_"),
        word if WORDS.contains(&word) => format!("r#{word}"),
        word => word.to_owned(),
    }
}

/// What serde makes of the name of a field with `rename_all = "camelCase"`.
pub(crate) fn camel(field: &str) -> String {
    let mut name = String::new();
    let mut upper = false;
    for char in field.trim_start_matches("r#").chars() {
        match char {
            '_' => upper = true,
            char if upper => {
                name.extend(char.to_uppercase());
                upper = false;
            }
            char => name.push(char),
        }
    }
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_lowercase().to_string() + chars.as_str()).unwrap_or_default()
}

/// The name of a type or a value of an enumeration: `max-size` is `MaxSize`, `` is `Empty`, `10` is `N10`.
pub(crate) fn type_name(name: &str) -> String {
    let mut result = String::new();
    let mut upper = true;
    for char in name.chars() {
        if !char.is_ascii_alphanumeric() {
            upper = true;
        } else if upper {
            result.push(char.to_ascii_uppercase());
            upper = false;
        } else {
            result.push(char);
        }
    }
    match result.as_str() {
        "" if name.is_empty() => "Empty".to_owned(),
        "" => name.chars().map(|char| format!("U{:x}", u32::from(char))).collect(),
        "Self" => "Self_".to_owned(),
        word if word.starts_with(|first: char| first.is_ascii_digit()) => format!("N{word}"),
        word => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_names_of_rust() {
        let fields = [
            ("maxSize", "max_size"),
            ("type", "r#type"),
            ("self", "self_"),
            ("$ref", "r#ref"),
            ("serviceURL", "service_url"),
            ("x-kubernetes", "x_kubernetes"),
            ("50x", "n50x"),
            ("_", "field"),
        ];
        for (name, expected) in fields {
            assert_eq!(field(name), expected);
        }
        assert_eq!(camel("max_size"), "maxSize");
        assert_eq!(camel("r#type"), "type");
        for (name, expected) in
            [("max-size", "MaxSize"), ("", "Empty"), ("10", "N10"), ("Self", "Self_"), ("=", "U3d")]
        {
            assert_eq!(type_name(name), expected);
        }
    }
}
