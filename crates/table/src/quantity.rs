use serde_json::Value;

const NANOS: i128 = 1_000_000_000;
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// How a quantity is written: with which suffixes.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// A resource quantity as the API server prints it, `0` if there is none: `1000m` is `1`, `1024Mi` is `1Gi`.
///
/// What is no quantity is left as it is, and so is one too large to be real.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::String(text) => normal(text.trim()).unwrap_or_else(|| text.clone()),
        Value::Number(number) => {
            let text = number.to_string();
            normal(&text).unwrap_or(text)
        }
        _ => "0".into(),
    }
}

/// Writes a value as [`canonical`] does, or `<nil>` for null, as Go writes a pointer.
pub fn optional(value: &Value) -> String {
    if value.is_null() { "<nil>".into() } else { canonical(value) }
}

fn normal(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = unsigned.split_at(digits(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if text.is_empty() {
        return None;
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let shifted = format!("{whole}{fraction}");
    let mantissa: i128 = shifted.parse().ok().filter(|_| shifted.len() <= 30)?;
    let places = i32::try_from(fraction.len()).ok()?;
    let (format, nanos) = match suffix_of(suffix)? {
        (Format::Binary, power) => {
            if fraction.is_empty() && mantissa % 8 != 0 && binary_is_short(whole.len(), power) {
                return Some(text.into());
            }
            let nanos = mantissa.checked_mul(1 << power)?.checked_mul(NANOS)?;
            let nanos = round_up(nanos, 10i128.checked_pow(fraction.len() as u32)?);
            (Format::Binary, nanos.min(i128::from(i64::MAX) * NANOS))
        }
        (format, power) => {
            let scale = power - places;
            if shifted.len() <= 18
                && scale >= -9
                && scale % 3 == 0
                && !shifted.ends_with("000")
                && !shifted.starts_with('0')
            {
                return Some(text.into());
            }
            let shift = 10i128.checked_pow((scale + 9).unsigned_abs())?;
            (format, if scale >= -9 { mantissa.checked_mul(shift)? } else { round_up(mantissa, shift) })
        }
    };
    let sign = if text.starts_with('-') && nanos != 0 { "-" } else { "" };
    Some(format!("{sign}{}", write(format, nanos)))
}

/// Whether Go keeps a number with a binary suffix as it was written.
fn binary_is_short(digits: usize, power: i32) -> bool {
    15 - digits as i32 - power * 3 / 10 > 0
}

/// The format and power of a suffix: of two for binary ones, of ten for the others.
fn suffix_of(suffix: &str) -> Option<(Format, i32)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Decimal, *power));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Binary, *power as i32));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (exponent.unsigned_abs() <= 30).then_some((Format::Exponent, exponent))
}

fn round_up(value: i128, divisor: i128) -> i128 {
    value / divisor + i128::from(value % divisor != 0)
}

fn write(format: Format, nanos: i128) -> String {
    if nanos == 0 {
        return "0".into();
    }
    let whole = nanos % NANOS == 0;
    if format == Format::Binary && whole && nanos >= 1024 * NANOS {
        let (value, times) = factor_out(nanos / NANOS, 1024);
        let suffix = times.checked_sub(1).and_then(|index| BINARY.get(index)).map_or("", |(name, _)| name);
        return format!("{value}{suffix}");
    }
    let (value, times) = factor_out(nanos, 10);
    let power = times as i32 - 9;
    let extra = power.rem_euclid(3);
    let value = value * 10i128.pow(extra.unsigned_abs());
    let power = power - extra;
    match DECIMAL.iter().find(|(_, known)| *known == power) {
        Some((name, _)) if format != Format::Exponent => format!("{value}{name}"),
        _ if power == 0 => value.to_string(),
        _ => format!("{value}e{power}"),
    }
}

/// The value without a factor, and how often it was in there.
fn factor_out(mut value: i128, factor: i128) -> (i128, usize) {
    let mut times = 0;
    while value >= factor && value % factor == 0 {
        value /= factor;
        times += 1;
    }
    (value, times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_as_kubernetes_writes_them() -> serde_json::Result<()> {
        for line in include_str!("../tests/data/quantity.jsonl").lines() {
            let case: Value = serde_json::from_str(line)?;
            let text = &case["text"];
            let expected = case["shown"].as_str().or(text.as_str());
            assert_eq!(Some(canonical(text).as_str()), expected, "{text}");
        }
        Ok(())
    }

    #[test]
    fn an_exponent_that_means_nothing_is_shown_as_it_is() {
        for text in ["1e-2147483648", "1.5e-2147483648", "1e2147483647", "999999999999999999999999999999e30"]
        {
            assert_eq!(canonical(&text.into()), text);
        }
    }
}
