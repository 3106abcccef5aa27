//! Escapes in quoted strings, as Go's `strconv` reads them.

/// The text between quotes without its escapes; `None` if one of them is wrong.
pub(super) fn unquote(text: &str, quote: char) -> Option<String> {
    if !text.contains('\\') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char == quote {
            return None;
        }
        if char != '\\' {
            push(&mut bytes, char);
            continue;
        }
        match rest.next()? {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(11),
            '\\' => bytes.push(b'\\'),
            escaped @ ('"' | '\'') if escaped == quote => bytes.push(escaped as u8),
            'x' => bytes.push(u8::try_from(digits(&mut rest, 2, 16)?).ok()?),
            'u' => push(&mut bytes, char::from_u32(digits(&mut rest, 4, 16)?)?),
            'U' => push(&mut bytes, char::from_u32(digits(&mut rest, 8, 16)?)?),
            first @ '0'..='7' => {
                let high = first.to_digit(8)? * 64;
                bytes.push(u8::try_from(high + digits(&mut rest, 2, 8)?).ok()?);
            }
            _ => return None,
        }
    }
    // Bytes that are no text cannot be equal to any in a JSON value; what stands for them cannot either.
    Some(
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

fn push(bytes: &mut Vec<u8>, char: char) {
    bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
}

fn digits(rest: &mut std::str::Chars<'_>, count: usize, radix: u32) -> Option<u32> {
    (0..count).try_fold(0u32, |number, _| {
        let digit = rest.next()?.to_digit(radix)?;
        number.checked_mul(radix)?.checked_add(digit)
    })
}
