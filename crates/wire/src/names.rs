//! The rules for names, label keys and label values, as lists of messages.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// Errors in a name that must be a DNS subdomain (RFC 1123): the name of most objects.
pub fn dns_subdomain_problems(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 253);
    if !name.split('.').all(is_label) {
        problems.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            &["example.com"],
            &format!(r"{LABEL}(\.{LABEL})*"),
        ));
    }
    problems
}

/// Errors in a name that must be a DNS label (RFC 1123): the name of a namespace.
pub fn dns_label_problems(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 63);
    if is_label(name) {
        return problems;
    }
    if name.split('.').all(is_label) {
        problems.push("must not contain dots".into());
    } else {
        problems.push(pattern(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
            &["my-name", "123-abc"],
            LABEL,
        ));
    }
    problems
}

/// Errors in a name that must be a DNS label (RFC 1035): it starts with a letter.
pub fn dns_1035_label_problems(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 63);
    if !(is_label(name) && name.starts_with(|char: char| char.is_ascii_lowercase())) {
        problems.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            &["my-name", "abc-123"],
            "[a-z]([-a-z0-9]*[a-z0-9])?",
        ));
    }
    problems
}

/// Errors in the key of a label or annotation, or in a finalizer.
pub fn label_key_problems(key: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let mut problems = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        ["", name] => {
            problems.push("prefix part must be non-empty".into());
            name
        }
        [prefix, name] => {
            let of_prefix = dns_subdomain_problems(prefix);
            problems.extend(of_prefix.into_iter().map(|problem| format!("prefix part {problem}")));
            name
        }
        _ => {
            let rule = pattern(KEY_RULE, &examples, KEY);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".into());
    }
    problems.extend(too_long(name, 63).into_iter().map(|problem| format!("name part {problem}")));
    if !is_key(name) {
        problems.push(format!("name part {}", pattern(KEY_RULE, &examples, KEY)));
    }
    problems
}

/// Errors in the value of a label.
pub fn label_value_problems(value: &str) -> Vec<String> {
    let mut problems = too_long(value, 63);
    if !value.is_empty() && !is_key(value) {
        problems.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            &["MyValue", "my_value", "12345"],
            &format!("({KEY})?"),
        ));
    }
    problems
}

fn too_long(text: &str, limit: usize) -> Vec<String> {
    let problem = (text.len() > limit).then(|| format!("must be no more than {limit} bytes"));
    problem.into_iter().collect()
}

fn pattern(rule: &str, examples: &[&str], pattern: &str) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

fn is_label(text: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(text, plain, |byte| plain(byte) || *byte == b'-')
}

fn is_key(text: &str) -> bool {
    is_framed(text, u8::is_ascii_alphanumeric, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
    })
}

/// Whether a text is not empty, consists of `inner` bytes and begins and ends with an `outer` one.
fn is_framed(text: &str, outer: impl Fn(&u8) -> bool, inner: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&outer) && bytes.last().is_some_and(&outer) && bytes.iter().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_have_no_problems() {
        assert!(dns_subdomain_problems("a.b-c.0").is_empty());
        assert!(dns_label_problems("a-0").is_empty());
        assert!(dns_1035_label_problems("widget").is_empty());
        assert!(label_key_problems("example.com/My_key.1").is_empty());
        assert!(label_value_problems("").is_empty() && label_value_problems("A_b.c-1").is_empty());
    }

    #[test]
    fn problems_are_worded_as_kube_apiserver_words_them() {
        assert_eq!(
            dns_subdomain_problems("A"),
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(dns_label_problems("a.b"), ["must not contain dots"]);
        assert_eq!(
            label_value_problems("-"),
            [
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ]
        );
        assert_eq!(label_key_problems("/a"), ["prefix part must be non-empty"]);
        assert_eq!(label_key_problems(&"a".repeat(64)), ["name part must be no more than 63 bytes"]);
        assert!(label_key_problems("a/b/c")[0].starts_with("a valid label key must consist of"));
    }
}
