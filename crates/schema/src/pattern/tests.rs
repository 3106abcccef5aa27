use super::*;

fn matches(pattern: &str, text: &str) -> bool {
    Pattern::compile(pattern).matches(text).unwrap()
}

#[test]
fn means_what_it_means_in_go() {
    for (pattern, text, expected) in [
        (r"^\d+$", "12", true),
        (r"^\d+$", "١٢", false),
        (r"^\w$", "é", false),
        (r"^\W$", "é", true),
        (r"^\s$", "\u{a0}", false),
        (r"^\s$", "\u{b}", false),
        (r"^[\d\-x]+$", "1-x", true),
        (r"^[[]$", "[", true),
        (r"^[a&&b]+$", "a&b", true),
        (r"^[a~~b]$", "~", true),
        (r"^[]a]+$", "]a", true),
        (r"^[^]a]$", "]", false),
        (r"^[a-]$", "-", true),
        (r"^[+--]$", ",", true),
        (r"^a{,2}$", "a{,2}", true),
        (r"^a{2}$", "aa", true),
        (r"^{x}$", "{x}", true),
        (r"^\Qa.b\E+$", "a.bbb", true),
        (r"^\Qa.b", "a.b", true),
        (r"^\<\>$", "<>", true),
        (r"\bé", "aé", true),
        (r"^[[:alpha:]]+$", "ab", true),
        (r"^[[:^alpha:]]$", "1", true),
        (r"^\p{Greek}\pL\P{Greek}$", "αéb", true),
        (r"^\p{^Greek}$", "b", true),
        (r"^\x41\x{1F600}\101$", "A😀A", true),
        ("^a$", "a\n", false),
        ("b", "abc", true),
        ("(?i)^K$", "k", true),
        ("(?P<n>a)(?<n>b)", "ab", true),
        ("^(?s:.)$", "\n", true),
        ("^.$", "\n", false),
        (r"^[\]\^]+$", "]^", true),
        (r"^[a-zA-Z0-9\-._~%!$&'()*+,;=:]+$", "a-b&c(d)[", false),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text:?}");
    }
}

#[test]
fn what_go_refuses_is_refused_in_its_words() {
    for (pattern, problem) in [
        ("(abc", "missing closing ): `(abc`"),
        ("abc)", "unexpected ): `abc)`"),
        ("[abc", "missing closing ]: `[abc`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|+?", "missing argument to repetition operator: `+?`"),
        ("\\p+", "invalid character class range: `\\p+`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        (r"a\1", r"invalid escape sequence: `\1`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
    ] {
        let pattern = Pattern::compile(pattern);
        assert_eq!(
            pattern.problem(),
            Some(&*format!("error parsing regexp: {problem}")),
            "{}",
            pattern.source()
        );
    }
}

#[test]
fn a_pattern_that_explodes_is_refused() {
    assert!(Pattern::compile("((a{1000}){1000}){1000}").problem().is_some());
}
