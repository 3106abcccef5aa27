//! Paths as they are matched and forwarded.

use std::borrow::Cow;

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadPath {
    /// `..` or `.` as a segment, written out or escaped: where it leads depends on who reads it.
    DotSegment,
    /// A backslash, which some servers take for a slash, or an escaped NUL.
    Character,
    /// A percent sign without two hexadecimal digits.
    Escape,
}

/// The form of a path that gateway and backend understand alike: what need not be escaped is not (RFC 3986, 6.2.2.2), so that `/%61dmin` is
/// matched as `/admin`. Escaped slashes stay escaped.
pub(crate) fn normalised(path: &str) -> Result<Cow<'_, str>, BadPath> {
    let path = match path.contains('%') {
        false => Cow::Borrowed(path),
        true => Cow::Owned(unescaped(path)?),
    };
    if path.contains('\\') {
        return Err(BadPath::Character);
    }
    let has_dots = |path: &str| path.split(['/', ';']).any(|segment| segment == "." || segment == "..");
    // Nearly all paths have no segment that begins with a dot. Some servers take an escaped slash for one.
    if path.contains("/.") && has_dots(&path) || path.contains("%2F") && has_dots(&path.replace("%2F", "/")) {
        return Err(BadPath::DotSegment);
    }
    Ok(path)
}

fn unescaped(path: &str) -> Result<String, BadPath> {
    let bytes = path.as_bytes();
    let mut text = String::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte != b'%' {
            // A path that comes in has ASCII only; others are kept as they are.
            let length = path[at..].chars().next().map_or(1, char::len_utf8);
            text.push_str(&path[at..at + length]);
            at += length;
            continue;
        }
        let digits =
            path.get(at + 1..at + 3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let digits = digits.ok_or(BadPath::Escape)?;
        let value = u8::from_str_radix(digits, 16).map_err(|_| BadPath::Escape)?;
        match value {
            0 | b'\\' => return Err(BadPath::Character),
            value if value.is_ascii_alphanumeric() || b"-._~".contains(&value) => {
                text.push(char::from(value));
            }
            _ => {
                text.push('%');
                text.push_str(&digits.to_ascii_uppercase());
            }
        }
        at += 3;
    }
    Ok(text)
}

/// The path of a request whose prefix is replaced. `prefix` and `replacement` have no slash at their ends.
pub(crate) fn replaced(path: &str, prefix: &str, replacement: &str) -> String {
    let rest = path.strip_prefix(prefix).unwrap_or(path);
    match (replacement, rest) {
        ("", "") => "/".to_owned(),
        (replacement, rest) if rest.is_empty() || rest.starts_with('/') => format!("{replacement}{rest}"),
        (replacement, rest) => format!("{replacement}/{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_mean_the_same_are_the_same() {
        for (path, expected) in [
            ("/", "/"),
            ("/a/b%20c", "/a/b%20c"),
            ("/%61dmin", "/admin"),
            ("/a%2fb", "/a%2Fb"),
            ("/%7euser/.well-known/x", "/~user/.well-known/x"),
            ("/...", "/..."),
            ("/a..b/..c", "/a..b/..c"),
        ] {
            assert_eq!(normalised(path).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for path in [
            "/..",
            "/../x",
            "/a/../b",
            "/a/./b",
            "/a/%2e%2e/b",
            "/a/.%2E",
            "/%2e/",
            "/a/..;x=1/b",
            "/a%2f..%2fb",
        ] {
            assert_eq!(normalised(path), Err(BadPath::DotSegment), "{path}");
        }
        for path in ["/a\\..\\b", "/a%5cb", "/a%00"] {
            assert_eq!(normalised(path), Err(BadPath::Character), "{path}");
        }
        for path in ["/%", "/%2", "/%zz", "/%+1"] {
            assert_eq!(normalised(path), Err(BadPath::Escape), "{path}");
        }
    }

    #[test]
    fn prefixes_are_replaced_at_segments() {
        for (path, prefix, replacement, expected) in [
            ("/shop/cart", "/shop", "/v2", "/v2/cart"),
            ("/shop", "/shop", "/v2", "/v2"),
            ("/shop/", "/shop", "/v2", "/v2/"),
            ("/shop", "/shop", "", "/"),
            ("/shop/cart", "/shop", "", "/cart"),
            ("/cart", "", "/v2", "/v2/cart"),
            ("/", "", "/v2", "/v2/"),
        ] {
            assert_eq!(replaced(path, prefix, replacement), expected, "{path} {prefix} {replacement}");
        }
    }
}
