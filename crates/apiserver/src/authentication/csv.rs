//! Comma-separated values as Go's `encoding/csv` reads them, which is what decides whether a token file is good.

/// Where and why a text is not comma-separated values. Says nothing of what is in it.
pub(super) struct Malformed {
    pub(super) line: usize,
    pub(super) reason: &'static str,
}

/// The records of a text, each with the number of the line it begins on. Empty lines are none.
pub(super) fn records(text: &str) -> Result<Vec<(usize, Vec<String>)>, Malformed> {
    let text = text.replace("\r\n", "\n");
    let mut records = Vec::new();
    let mut rest = text.as_str();
    let mut line = 1;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('\n') {
            (rest, line) = (after, line + 1);
            continue;
        }
        let begin = line;
        let mut record = Vec::new();
        loop {
            let (value, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted_value(quoted, &mut line)?,
                None => bare_value(rest, line)?,
            };
            record.push(value);
            let Some(next) = after.strip_prefix(',') else {
                rest = after.strip_prefix('\n').unwrap_or(after);
                line += 1;
                break;
            };
            rest = next;
        }
        records.push((begin, record));
    }
    Ok(records)
}

fn bare_value(text: &str, line: usize) -> Result<(String, &str), Malformed> {
    let (value, rest) = text.split_at(text.find([',', '\n']).unwrap_or(text.len()));
    if value.contains('"') {
        return Err(Malformed { line, reason: "a quote in a value that does not begin with one" });
    }
    Ok((value.to_owned(), rest))
}

fn quoted_value<'t>(mut text: &'t str, line: &mut usize) -> Result<(String, &'t str), Malformed> {
    let mut value = String::new();
    loop {
        let Some(quote) = text.find('"') else {
            return Err(Malformed { line: *line, reason: "a quote is not closed" });
        };
        value.push_str(&text[..quote]);
        *line += text[..quote].matches('\n').count();
        text = &text[quote + 1..];
        match text.bytes().next() {
            Some(b'"') => {
                value.push('"');
                text = &text[1..];
            }
            None | Some(b',' | b'\n') => return Ok((value, text)),
            Some(_) => return Err(Malformed { line: *line, reason: "text behind a closing quote" }),
        }
    }
}
