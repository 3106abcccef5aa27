use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The version of one object's state, or a position in a source's log.
///
/// Versions are opaque: two are equal or they are not. Only a source that declares [`Order::Total`] gives *older*
/// and *newer* a meaning, and [`Order::compare`] is the one place that decides it.
///
/// ```
/// use watchkeeper_core::Version;
/// assert_eq!(Version::from("512").to_string(), "512");
/// assert_ne!(Version::from("0512"), Version::from("512"));
/// assert_eq!(size_of::<Version>(), 16);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    /// A decimal number whose canonical text is exactly what was given.
    Number(u64),
    Text(Arc<str>),
}

impl Version {
    /// The version as a number, if its text is a canonical decimal number that fits.
    pub fn number(&self) -> Option<u64> {
        match self.0 {
            Form::Number(number) => Some(number),
            Form::Text(_) => None,
        }
    }

    /// Whether the source has no versions. Two empty versions may belong to different states.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Form::Text(text) if text.is_empty())
    }
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        let canonical =
            text == "0" || text.bytes().next().is_some_and(|first| (b'1'..=b'9').contains(&first));
        match text.parse() {
            Ok(number) if canonical => Self(Form::Number(number)),
            _ => Self(Form::Text(text.into())),
        }
    }
}

impl From<u64> for Version {
    fn from(number: u64) -> Self {
        Self(Form::Number(number))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Number(number) => write!(f, "{number}"),
            Form::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// The order of the versions of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Equal or not equal; nothing else may be concluded.
    Opaque,
    /// Decimal numbers that grow with every change of the source, over all its objects.
    Total,
}

impl Order {
    /// Compares two versions; `None` if their order is not known. Callers must treat `None` as "may be newer".
    pub fn compare(self, left: &Version, right: &Version) -> Option<Ordering> {
        match self {
            _ if left.is_empty() || right.is_empty() => None,
            Self::Opaque => (left == right).then_some(Ordering::Equal),
            Self::Total => Some(left.number()?.cmp(&right.number()?)),
        }
    }

    /// Whether `left` is known to be older than `right`.
    pub fn is_older(self, left: &Version, right: &Version) -> bool {
        self.compare(left, right) == Some(Ordering::Less)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_whatever_it_is() {
        for text in
            ["0", "7", "18446744073709551615", "18446744073709551616", "007", "+7", "-1", "", "7.0", "lsn/1"]
        {
            assert_eq!(Version::from(text).to_string(), text);
        }
    }

    #[test]
    fn only_a_total_order_compares_and_only_numbers() {
        let (old, new) = (Version::from("9"), Version::from("10"));
        assert!(Order::Total.is_older(&old, &new));
        assert_eq!(Order::Opaque.compare(&old, &new), None);
        assert_eq!(Order::Opaque.compare(&old, &old), Some(Ordering::Equal));
        assert_eq!(Order::Total.compare(&old, &Version::from("x")), None);
        assert_eq!(Order::Total.compare(&Version::from(""), &Version::from("")), None);
    }
}
