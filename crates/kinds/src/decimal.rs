//! Quantities: numbers with a unit, and their one canonical form.

pub(crate) const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// A quantity, such as `500m` or `1Gi`: `digits * 10^exponent`, and the suffixes it is written with.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    digits: i128,
    exponent: i32,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

/// A quantity in its canonical form: `1000m` is `1`, `1024Mi` is `1Gi`.
///
/// What is nearly canonical stays as it is, as in kube-apiserver, and so do numbers too long to reckon with.
pub(crate) fn canonical(text: &str) -> Result<String, String> {
    let text = text.trim();
    Ok(match parse(text)? {
        Some(quantity) if !passes_for_canonical(text) => {
            quantity.canonical().unwrap_or_else(|| text.to_owned())
        }
        _ => text.to_owned(),
    })
}

/// A quantity of at most three decimal places: rounded up, if it has more.
pub(crate) fn rounded_up_to_thousandths(text: &str) -> Option<String> {
    let quantity = parse(text).ok()??;
    if quantity.exponent >= -3 {
        return None;
    }
    let thousandths = Quantity { exponent: quantity.exponent + 3, ..quantity }.whole()?;
    Quantity { digits: thousandths, exponent: -3, form: quantity.form }.canonical()
}

/// The shortcut kube-apiserver takes: such a text is not written anew.
fn passes_for_canonical(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if let Some(power) = BINARY.iter().position(|name| *name == suffix).filter(|power| *power > 0) {
        let digits = 14 - whole.len() as i64 - 3 * power as i64;
        return fraction.is_empty() && digits >= 0 && whole.parse().is_ok_and(|value: i64| value & 7 != 0);
    }
    let Some((_, _, exponent)) = read_suffix(suffix) else { return false };
    let shifted = format!("{whole}{fraction}");
    let scale = i64::from(exponent) - fraction.len() as i64;
    shifted.len() <= 18
        && scale >= -9
        && scale % 3 == 0
        && !shifted.ends_with("000")
        && !shifted.starts_with('0')
}

/// A quantity, or `None` if it has too many digits to reckon with; the error is kube-apiserver's.
pub(crate) fn parse(text: &str) -> Result<Option<Quantity>, String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || !has_suffix_form(suffix) {
        return Err(WRONG_FORMAT.into());
    }
    let (form, factor, exponent) = read_suffix(suffix).ok_or(WRONG_SUFFIX)?;
    let fraction = fraction.trim_end_matches('0');
    let Ok(digits) = format!("0{whole}{fraction}").parse::<i128>() else { return Ok(None) };
    let Some(digits) = digits.checked_mul(factor) else { return Ok(None) };
    let digits = if text.starts_with('-') { -digits } else { digits };
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    Ok(Some(Quantity { digits, exponent: exponent.saturating_sub(places), form }))
}

/// Letters of units, then maybe a signed number.
fn has_suffix_form(suffix: &str) -> bool {
    let digits = suffix.trim_start_matches(|char| "eEinumkKMGTP".contains(char));
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn read_suffix(suffix: &str) -> Option<(Form, i128, i32)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Form::Decimal, 1, *exponent));
    }
    if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
        return Some((Form::Binary, 1024_i128.pow(power as u32), 0));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Form::Exponent, 1, exponent))
}

impl Quantity {
    /// None of something.
    pub const ZERO: Self = Self::of(0);

    /// A whole number.
    pub const fn of(number: i64) -> Self {
        Self { digits: number as i128, exponent: 0, form: Form::Decimal }
    }

    /// Reads a quantity; `None` if it is none, or has too many digits to reckon with.
    pub fn read(text: &str) -> Option<Self> {
        parse(text.trim()).ok().flatten()
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// Whether it is less than nothing.
    pub fn is_negative(&self) -> bool {
        self.digits < 0
    }

    /// The sum, written as the first of the two that is not zero; `None` if it is too large to reckon with.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        if other.is_zero() {
            return Some(*self);
        }
        if self.is_zero() {
            return Some(*other);
        }
        let least = self.exponent.min(other.exponent);
        let digits = self.scaled_to(least)?.checked_add(other.scaled_to(least)?)?;
        Some(Self { digits, exponent: least, form: self.form })
    }

    /// The difference, as [`Quantity::plus`].
    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&Self { digits: other.digits.checked_neg()?, ..*other })
    }

    /// The number of thousandths, rounded up; `None` if there are too many to reckon with.
    pub fn thousandths(&self) -> Option<i128> {
        Self { exponent: self.exponent.checked_add(3)?, ..*self }.whole()
    }

    /// The quantity rounded up to a whole number.
    pub fn rounded_up(&self) -> Self {
        match self.whole() {
            Some(digits) if !self.is_whole() => Self { digits, exponent: 0, form: self.form },
            _ => *self,
        }
    }

    /// Compares two quantities; `None` if they are too far apart for the computation.
    pub fn compare(&self, other: &Self) -> Option<std::cmp::Ordering> {
        let least = self.exponent.min(other.exponent);
        Some(self.scaled_to(least)?.cmp(&other.scaled_to(least)?))
    }

    fn scaled_to(&self, exponent: i32) -> Option<i128> {
        let power = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        self.digits.checked_mul(10_i128.checked_pow(power)?)
    }

    /// The number rounded up to a whole one.
    pub fn whole(&self) -> Option<i128> {
        if self.exponent >= 0 {
            return self.scaled_to(0);
        }
        let power = 10_i128.checked_pow(self.exponent.unsigned_abs())?;
        let floor = self.digits.div_euclid(power);
        Some(if self.digits.rem_euclid(power) == 0 { floor } else { floor + 1 })
    }

    pub(crate) fn is_whole(&self) -> bool {
        let power = 10_i128.checked_pow(self.exponent.min(0).unsigned_abs());
        power.is_some_and(|power| self.digits % power == 0)
    }

    fn canonical(self) -> Option<String> {
        if self.digits == 0 {
            return Some("0".into());
        }
        let whole = self.whole()?;
        match self.form {
            Form::Binary if self.is_whole() && whole.abs() >= 1024 => {
                Some(binary(whole.min(i128::from(i64::MAX))))
            }
            Form::Exponent => self.decimal(|exponent| Some(format!("e{exponent}"))),
            _ => self.decimal(|exponent| {
                let known = DECIMAL.iter().find(|(_, known)| *known == exponent);
                known.map(|(name, _)| (*name).to_owned())
            }),
        }
    }

    /// The shortest number whose exponent is a multiple of three; nothing is finer than a billionth.
    fn decimal(self, suffix: impl Fn(i32) -> Option<String>) -> Option<String> {
        let (mut digits, mut exponent) = (self.digits, self.exponent);
        while exponent < -9 {
            let floor = digits.div_euclid(10);
            digits = if digits.rem_euclid(10) == 0 { floor } else { floor + 1 };
            exponent += 1;
        }
        while digits % 10 == 0 && digits != 0 {
            digits /= 10;
            exponent += 1;
        }
        let shift = exponent.rem_euclid(3);
        digits = digits.checked_mul(10_i128.pow(shift.unsigned_abs()))?;
        exponent -= shift;
        let suffix = if exponent == 0 { String::new() } else { suffix(exponent)? };
        Some(format!("{digits}{suffix}"))
    }
}

fn binary(mut whole: i128) -> String {
    let mut power = 0;
    while whole % 1024 == 0 && power + 1 < BINARY.len() {
        whole /= 1024;
        power += 1;
    }
    format!("{whole}{}", BINARY[power])
}

/// The canonical form; digits and an exponent where there is none.
impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.canonical() {
            Some(text) => f.write_str(&text),
            None => write!(f, "{}e{}", self.digits, self.exponent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Quantity {
        Quantity::read(text).unwrap()
    }

    #[test]
    fn sums_are_written_as_their_first_part() {
        for (one, other, sum) in [
            ("1", "500m", "1500m"),
            ("1Gi", "512Mi", "1536Mi"),
            ("1Gi", "1G", "2073741824"),
            ("0", "1Gi", "1Gi"),
            ("1Gi", "0", "1Gi"),
            ("100m", "900m", "1"),
        ] {
            assert_eq!(read(one).plus(&read(other)).unwrap().to_string(), sum, "{one} + {other}");
        }
        assert_eq!(read("2Gi").minus(&read("1Gi")).unwrap().to_string(), "1Gi");
        assert!(read("1").minus(&read("2")).unwrap().is_negative());
    }

    #[test]
    fn parts_of_a_whole_are_rounded_up() {
        assert_eq!(read("1500u").thousandths(), Some(2));
        assert_eq!(read("2").thousandths(), Some(2000));
        assert_eq!(read("1500m").rounded_up().to_string(), "2");
        assert!(Quantity::read("much").is_none());
    }
}
