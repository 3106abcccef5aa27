//! Queries of URLs.

/// The first value of a parameter of a query, decoded.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key) == name).then(|| decoded(value))
    })
}

fn decoded(text: &str) -> String {
    let text = if text.contains('+') { text.replace('+', " ") } else { text.to_owned() };
    match text.contains('%') {
        true => {
            String::from_utf8_lossy(&watchkeeper_core::text::percent_decoded(text.as_bytes())).into_owned()
        }
        false => text,
    }
}
