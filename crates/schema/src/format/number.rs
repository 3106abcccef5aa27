//! Texts that are made of digits.

fn digits(text: &str, count: usize) -> Option<Vec<u32>> {
    let digits: Option<Vec<u32>> = text.chars().map(|char| char.to_digit(10)).collect();
    digits.filter(|digits| digits.len() == count)
}

/// Go's `\s` and the minus.
fn without_spaces_and_minus(text: &str) -> String {
    text.chars().filter(|char| !matches!(char, ' ' | '\t' | '\n' | '\u{c}' | '\r' | '-')).collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let text = without_spaces_and_minus(text);
    let (body, check) = match text.char_indices().nth(9) {
        Some((at, 'X')) => (&text[..at], Some(10).filter(|_| text.len() == at + 1)),
        Some((at, char)) => (&text[..at], char.to_digit(10).filter(|_| text.len() == at + 1)),
        None => return false,
    };
    let (Some(body), Some(check)) = (digits(body, 9), check) else {
        return false;
    };
    let sum: u32 = body.iter().chain([&check]).zip(1..).map(|(digit, weight)| digit * weight).sum();
    sum.is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let Some(digits) = digits(&without_spaces_and_minus(text), 13) else {
        return false;
    };
    let sum: u32 =
        digits[..12].iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    digits[12] == (10 - sum % 10) % 10
}

/// The number of one of the large issuers, anything but digits left out, with a good check digit.
pub(super) fn is_credit_card(text: &str) -> bool {
    let number: String = text.chars().filter(char::is_ascii_digit).collect();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| number.starts_with(prefix));
    let issued = match number.len() {
        13 => starts(&["4"]),
        14 => starts(&["300", "301", "302", "303", "304", "305", "36", "38"]),
        15 => starts(&["34", "37", "2131", "1800"]),
        16 => starts(&["4", "51", "52", "53", "54", "55", "6011", "65", "35"]),
        _ => false,
    };
    let doubled = |(place, digit): (usize, u32)| match digit << (place % 2) {
        two_digits @ 10.. => two_digits - 9,
        digit => digit,
    };
    let digits = number.chars().rev().filter_map(|char| char.to_digit(10));
    issued && digits.enumerate().map(doubled).sum::<u32>().is_multiple_of(10)
}

pub(super) fn is_ssn(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')'));
    let space = |char: char| matches!(char, ' ' | '\t' | '\n' | '\u{c}' | '\r');
    inner.is_some_and(|inner| {
        let parts: Vec<&str> = inner.split(',').map(|part| part.trim_matches(space)).collect();
        parts.len() == 3 && parts.iter().all(|part| is_color_part(part))
    })
}

fn is_color_part(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
        && (part == "0" || !part.starts_with('0'))
        && part.parse::<u8>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_count() {
        assert!(is_isbn10("0321751043") && is_isbn10("0-8044-2957-X"));
        assert!(!is_isbn10("0321751044") && !is_isbn10("") && !is_isbn10("080442957é"));
        assert!(is_isbn13("978-0321751041") && !is_isbn13("9780321751042"));
        assert!(is_credit_card("4111-1111-1111-1111") && !is_credit_card("4111111111111112"));
        assert!(is_credit_card("378282246310005") && !is_credit_card("9999999999999999"));
    }

    #[test]
    fn shapes_count() {
        assert!(is_ssn("111-11-1111") && is_ssn("111 11 1111") && !is_ssn("111111111"));
        assert!(is_rgb_color("rgb(255, 0,10)"));
        assert!(!is_rgb_color("rgb(256,0,0)") && !is_rgb_color("rgb(01,0,0)") && !is_rgb_color("rgb(1,2)"));
    }
}
