use super::*;
use proptest::prelude::*;
use serde_json::json;
use watchkeeper_go as go;

fn value(text: &str) -> Value {
    decode(text.as_bytes()).unwrap().value
}

#[test]
fn scalars_mean_what_they_mean_in_go() {
    for (text, expected) in [
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("n", json!(false)),
        ("~", json!(null)),
        ("", json!(null)),
        ("12", json!(12)),
        ("010", json!(8)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("0b11", json!(3)),
        ("1_000", json!(1000)),
        ("+1", json!(1)),
        ("-0x10", json!(-16)),
        ("1.0", json!(1)),
        ("1.5", json!(1.5)),
        ("1e3", json!(1000)),
        (".5", json!(0.5)),
        ("1e-7", json!(1e-7)),
        ("18446744073709551615", json!(18446744073709551615.0)),
        ("99999999999999999999", json!(99999999999999999999.0)),
        ("089", json!(89)),
        ("2020-01-01", json!("2020-01-01")),
        ("1:30", json!("1:30")),
        ("\"yes\"", json!("yes")),
        ("'1'", json!("1")),
        ("|\n  a\n  b\n", json!("a\nb\n")),
        ("!!str 1", json!("1")),
        ("!!float 1", json!(1)),
        ("0x", json!("0x")),
        ("-", json!([null])),
        ("a1", json!("a1")),
    ] {
        assert_eq!(value(text), expected, "{text:?}");
    }
}

#[test]
fn keys_become_texts() {
    assert_eq!(
        value("1: a\ntrue: b\n1.5: c\nyes2: d\n"),
        json!({"1": "a", "true": "b", "1.5": "c", "yes2": "d"})
    );
    assert!(decode(b"~: a").is_err());
    assert!(decode(b"[a]: b").is_err());
}

#[test]
fn duplicate_keys_make_one_strict_error_with_their_lines() {
    let decoded = decode(b"a: 1\nb:\n  c: 1\n  c: 2\na: 3\n1: x\n1: z\n").unwrap();
    assert_eq!(decoded.value, json!({"a": 3, "b": {"c": 2}, "1": "z"}));
    assert_eq!(
        decoded.strict_errors,
        [
            "yaml: unmarshal errors:\n  line 4: key \"c\" already set in map\n  line 5: key \"a\" already set in map\n  line 7: key 1 already set in map"
        ]
    );
}

#[test]
fn anchors_repeat_and_merge() {
    assert_eq!(
        value("base: &b {x: 1, z: 2}\nd:\n  <<: *b\n  z: 3\nl: [*b]\n"),
        json!({"base": {"x": 1, "z": 2}, "d": {"x": 1, "z": 3}, "l": [{"x": 1, "z": 2}]})
    );
    assert_eq!(
        value("a: &a {x: 1}\nb: &b {x: 2, z: 2}\nc:\n  <<: [*a, *b]\n"),
        json!({"a": {"x": 1}, "b": {"x": 2, "z": 2}, "c": {"x": 1, "z": 2}})
    );
    assert!(decode(b"a: &a [*a]").is_err());
    assert!(decode(b"a: *missing").is_err());
}

#[test]
fn only_what_calls_itself_yaml_1_1_is_read() {
    for head in ["", "---\n", "%YAML 1.1\n---\n", "# x\n%YAML 1.1 # y\n---\n", "%TAG ! tag:x,2000:\n---\n"] {
        assert_eq!(decode(format!("{head}a: 1\n").as_bytes()).unwrap().value, json!({"a": 1}), "{head}");
    }
    for (head, why) in [
        ("%YAML 1.2", "found incompatible YAML document"),
        ("%YAML 9.9", "found incompatible YAML document"),
        ("%YAML", "did not find expected version number"),
        ("%FOO x", "found unknown directive name"),
    ] {
        let error = decode(format!("{head}\n---\na: 1\n").as_bytes()).unwrap_err();
        assert!(error.to_string().ends_with(why), "{head}: {error}");
    }
}

#[test]
fn a_block_ends_as_its_text_does() {
    for (text, expected) in [
        ("a: |\n  v", "v"),
        ("a: |\n  v\n", "v\n"),
        ("a: |\n  v\n  ", "v\n"),
        ("a: |\n  v\n ", "v\n"),
        ("a: |+\n  v", "v"),
        ("a: |+\n  v\n\n  ", "v\n\n"),
        ("a: |-\n  v\n  ", "v"),
        ("a: >\n  v\n  w", "v w"),
        ("a: |\n  é\n  v", "é\nv"),
    ] {
        assert_eq!(value(text), json!({"a": expected}), "{text:?}");
    }
    assert_eq!(value("a: |\n  v\nb: c"), json!({"a": "v\n", "b": "c"}));
    for text in ["...\na: 1\n", "# x\n...\n---\na: 1\n"] {
        assert!(
            decode(text.as_bytes()).unwrap_err().to_string().ends_with("did not find expected node content")
        );
    }
}

#[test]
fn aliases_cannot_explode() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = level - 1;
        let aliases = vec![format!("*a{before}"); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let error = decode(text.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("excessive aliasing"), "{error}");
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 1000].join(","));
    assert!(decode(text.as_bytes()).is_err());
}

#[test]
fn only_the_first_document_is_read() {
    assert_eq!(value("---\na: 1\n---\nb: 2\n"), json!({"a": 1}));
    assert_eq!(value("# nothing\n"), json!(null));
}

#[test]
fn bad_yaml_is_refused_with_its_line() {
    let error = decode(b"a: 1\nb: [1\n").unwrap_err();
    assert!(error.to_string().starts_with("error converting YAML to JSON: yaml: line "), "{error}");
    assert!(decode(b"a: \xff").is_err());
    assert!(decode(b"a: .nan").is_err());
    assert!(decode("[".repeat(100_000).as_bytes()).is_err());
    assert!(decode(format!("a: {}{}", "[".repeat(500), "]".repeat(500)).as_bytes()).is_err());
    assert_eq!(decode("- ".repeat(MAX_DEPTH + 1).as_bytes()), Err(Error::TooDeep));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::cases(1_000)))]

    #[test]
    fn json_is_yaml(value in crate::arbitrary::value()) {
        let text = serde_json::to_string(&value).unwrap();
        let back = decode(text.as_bytes()).unwrap().value;
        // Floats without a fraction become integers on the way.
        let through_go = crate::json::decode(go::json::encode(&value).as_bytes()).unwrap().value;
        prop_assert_eq!(back, through_go, "{}", text);
    }

    #[test]
    fn random_text_neither_panics_nor_hangs(text in "([a-c]{1,2}|: |\n|  |- |\\[|\\]|\\{|\\}|,|&a |\\*a|<<|\"|'|#|!!int |\\||>|1|\\?|\t){0,40}") {
        let _ = decode(text.as_bytes());
    }
}

#[test]
fn what_would_take_too_much_memory_is_refused_while_it_is_decoded() {
    let many = |item: &str, times: usize| format!("[{}0]", format!("{item},").repeat(times));
    for text in [many("{a}", 110_000), many("a: 0", 110_000), many("[0]", 600_000), many("0", 3_000_000)] {
        assert_eq!(decode(text.as_bytes()), Err(Error::TooLarge), "{:.10}", text);
    }
    assert!(decode(many("{a}", 50_000).as_bytes()).is_ok());
    // What aliases repeat is refused before it could take as much.
    let aliases = format!("[&a {}, {}]", many("{a}", 20_000), many("*a", 5));
    assert!(matches!(decode(aliases.as_bytes()), Err(Error::Syntax(_))));
}
