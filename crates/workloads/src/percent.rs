#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Where a share is not a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Up,
    Down,
}

/// A number, or a share of `total` in percent. What is neither counts as nothing: the API does not let it in.
pub(crate) fn share(value: &IntOrString, total: i32, round: Round) -> i32 {
    let text = match value {
        IntOrString::Int(number) => return *number,
        IntOrString::String(text) => text,
    };
    let Some(percent) = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok()) else {
        return 0;
    };
    let hundredfold = percent.saturating_mul(i64::from(total));
    let whole = hundredfold
        .div_euclid(100)
        .saturating_add(i64::from(round == Round::Up && hundredfold.rem_euclid(100) > 0));
    i32::try_from(whole).unwrap_or(i32::MAX)
}
