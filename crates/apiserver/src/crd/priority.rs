use std::cmp::Ordering;

/// Which of two versions comes first in discovery: `Less` if it is the first.
///
/// Stable before beta before alpha, then the higher number; what does not look like a Kubernetes version comes last, by
/// name.
///
/// `v10, v2, v1, v11beta2, v10beta3, v3beta1, v12alpha1, v11alpha2, foo1, foo10`
pub(crate) fn compare_versions(one: &str, other: &str) -> Ordering {
    match (Parsed::of(one), Parsed::of(other)) {
        (Some(one), Some(other)) => other.cmp(&one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Parsed {
    stability: Stability,
    major: i64,
    minor: i64,
}

impl Parsed {
    fn of(version: &str) -> Option<Self> {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at(end);
        let (stability, minor) = if rest.is_empty() {
            (Stability::Stable, "0")
        } else if let Some(minor) = rest.strip_prefix("beta") {
            (Stability::Beta, minor)
        } else {
            (Stability::Alpha, rest.strip_prefix("alpha")?)
        };
        Some(Self { stability, major: digits(major)?, minor: digits(minor)? })
    }
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_in_the_order_of_discovery() {
        let order = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "",
            "V1",
            "foo1",
            "foo10",
            "v",
            "v1beta",
            "v1beta1x",
            "v1gamma1",
            "v99999999999999999999",
        ];
        for (at, one) in order.iter().enumerate() {
            for (other_at, other) in order.iter().enumerate() {
                assert_eq!(compare_versions(one, other), at.cmp(&other_at), "{one} and {other}");
            }
        }
    }
}
