use crate::Kind;
use crate::default::{add_missing, text};
use crate::kind::row::kind;
use crate::kind::strategy::Fields;
use crate::validate::field::{Errors, Field};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::label_key_problems;
use watchkeeper_table::layout::Layout;

pub(crate) const KIND: Kind = kind("", "v1", "LimitRange", "limitranges", "limitrange")
    .short(&["limits"])
    .created_on_update()
    .validate_with(validate)
    .type_defaults(&[("LimitRangeItem", default_item)])
    .metadata_checks(0, 1)
    .table(Layout::CREATED);

/// Limits default to the maximum, requests to the limits, then to the minimum.
fn default_item(fields: &mut Fields) {
    if text(fields, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let from = fields.get(from).cloned().unwrap_or_default();
        add_missing(fields, to, &from);
    }
}

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let mut kinds = HashSet::new();
    for limit in object.get("spec").get("limits").items() {
        let kind = limit.get("type");
        let problems = label_key_problems(kind.text());
        if problems.is_empty() && !kind.text().contains('/') {
            if !matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim") {
                kind.invalid("must be a standard limit type or fully qualified", errors);
            }
        } else {
            problems.iter().for_each(|problem| kind.invalid(problem, errors));
        }
        if !kinds.insert(kind.text()) {
            errors.push(FieldError::duplicate(&kind.at, kind.text()));
        }
        let is_pod = kind.text() == "Pod";
        for name in ["default", "defaultRequest"] {
            if is_pod && !limit.get(name).is_empty() {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&limit.get(name).at, detail));
            }
        }
        if kind.text() == "PersistentVolumeClaim"
            && ["min", "max"].into_iter().all(|name| !limit.get(name).get("storage").is_set())
        {
            let detail = "either minimum or maximum storage value is required, but neither was provided";
            errors.push(FieldError::required(&limit.at.child("limits"), detail));
        }
        bounds(&limit, is_pod, errors);
    }
}

/// Least, usual and most of each resource are in this order.
fn bounds(limit: &Field<'_>, is_pod: bool, errors: &mut Errors) {
    let names: BTreeSet<&str> = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
        .into_iter()
        .flat_map(|list| limit.get(list).entries().map(|(name, _)| name).collect::<Vec<_>>())
        .collect();
    for name in names {
        let of = |list: &str| {
            let amount = limit.get(list).get(name);
            let is_seen = !(is_pod && list.starts_with("default"));
            amount.quantity().filter(|_| is_seen).map(|read| (amount.text(), read))
        };
        // Which is above which, where it is said, which of them is shown, and in what words.
        const ORDER: [(&str, &str, &str, bool, &str, &str); 5] = [
            ("min", "max", "min", true, "min", "max"),
            ("min", "defaultRequest", "defaultRequest", false, "min", "default request"),
            ("defaultRequest", "max", "defaultRequest", true, "default request", "max"),
            ("defaultRequest", "default", "defaultRequest", true, "default request", "default limit"),
            ("min", "default", "default", true, "min", "default"),
        ];
        let mut compare =
            |(low, high, at, shows_low, low_word, high_word): (&str, &str, &str, bool, &str, &str)| {
                if let (Some((less, low)), Some((more, high))) = (of(low), of(high))
                    && low.compare(&high) == Some(Ordering::Greater)
                {
                    let detail = format!("{low_word} value {less} is greater than {high_word} value {more}");
                    let shown = if shows_low { less } else { more };
                    errors.push(FieldError::invalid(&limit.at.child(at).key(name), shown, detail));
                }
            };
        ORDER.into_iter().for_each(&mut compare);
        compare(("default", "max", "default", false, "default", "max"));
    }
}
