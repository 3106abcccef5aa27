use super::conditions::conditions;
use super::{bootstrap, table};
use crate::Kind;
use crate::kind::row::{STATUS, kind};
use crate::prepare::same;
use crate::validate::field::{Errors, Field};
use watchkeeper_schema::FieldError;

pub(crate) const KIND: Kind = kind(
    "flowcontrol.apiserver.k8s.io",
    "v1",
    "PriorityLevelConfiguration",
    "prioritylevelconfigurations",
    "prioritylevelconfiguration",
)
.cluster_wide()
.with(&[STATUS])
.generation()
.status_keeps(&["labels", "annotations", "finalizers", "ownerReferences"])
.validate_with(validate)
.table(table::PRIORITY_LEVEL);

/// The most queues of a level.
const MOST_QUEUES: i64 = 10_000_000;

/// How many bits of a hash choose the queues of a flow.
const HASH_BITS: i64 = 60;

fn validate(object: &Field<'_>, _: Option<&Field<'_>>, errors: &mut Errors) {
    let (spec, name) = (&object.get("spec"), object.get("metadata").get("name").text());
    let (kind, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    if (name == "exempt") != (kind.text() == "Exempt") {
        kind.invalid("must be 'Exempt' if and only if `name` is 'exempt'", errors);
    }
    match kind.text() {
        "Exempt" => {
            limited.forbidden_if_set("must be nil if the type is not Limited", errors);
            share(&exempt.get("nominalConcurrencyShares"), errors);
            percent(&exempt.get("lendablePercent"), errors);
        }
        "Limited" => {
            exempt.forbidden_if_set("must be nil if the type is Limited", errors);
            match limited.is_set() {
                true => self::limited(&limited, errors),
                false => {
                    errors.push(FieldError::required(&limited.at, "must not be empty when type is Limited"));
                }
            }
        }
        "" => errors.push(FieldError::required(&kind.at, "")),
        _ => kind.one_of(&["Exempt", "Limited"], errors),
    }
    fixed(spec, name, errors);
    conditions(&object.get("status").get("conditions"), errors);
}

/// The levels that every server relies on stay as they are, but for how much of the server is kept for the first of them.
fn fixed(spec: &Field<'_>, name: &str, errors: &mut Errors) {
    let Some(mut fixed) = bootstrap::fixed_level(name) else { return };
    let mut there = spec.value.clone();
    let but = if name == "exempt" {
        for either in [&mut fixed, &mut there] {
            either.as_object_mut().map(|fields| fields.remove("exempt"));
        }
        " except the 'spec.exempt' field"
    } else {
        ""
    };
    if !same(Some(&there), Some(&fixed)) {
        let detail = format!("spec of '{name}'{but} must equal the fixed value");
        let field = |name: &str| spec.value[name].clone();
        errors.push(FieldError::invalid(&spec.at, spec.value.clone(), detail).structure(&[
            ("Type", field("type")),
            ("Limited", field("limited")),
            ("Exempt", field("exempt")),
        ]));
    }
}

fn share(shares: &Field<'_>, errors: &mut Errors) {
    if shares.number().is_some_and(|shares| shares < 0) {
        shares.invalid("must be a non-negative integer", errors);
    }
}

fn percent(percent: &Field<'_>, errors: &mut Errors) {
    if percent.number().is_some_and(|percent| !(0..=100).contains(&percent)) {
        percent.invalid("must be between 0 and 100, inclusive", errors);
    }
}

fn limited(limited: &Field<'_>, errors: &mut Errors) {
    share(&limited.get("nominalConcurrencyShares"), errors);
    let response = limited.get("limitResponse");
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match kind.text() {
        "Reject" => {
            queuing.forbidden_if_set("must be nil if limited.limitResponse.type is not Limited", errors);
        }
        "Queue" if queuing.is_set() => self::queuing(&queuing, errors),
        "Queue" => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(&queuing.at, detail));
        }
        "" => errors.push(FieldError::required(&kind.at, "")),
        _ => kind.one_of(&["Queue", "Reject"], errors),
    }
    percent(&limited.get("lendablePercent"), errors);
    let borrowed = limited.get("borrowingLimitPercent");
    if borrowed.number().is_some_and(|percent| percent < 0) {
        borrowed.invalid("if specified, must be a non-negative integer", errors);
    }
}

fn queuing(queuing: &Field<'_>, errors: &mut Errors) {
    let [length, queues, hand] = ["queueLengthLimit", "queues", "handSize"].map(|field| queuing.get(field));
    let number = |field: &Field<'_>| field.number().unwrap_or_default();
    if number(&length) <= 0 {
        length.invalid("must be positive", errors);
    }
    let (count, size) = (number(&queues), number(&hand));
    if count <= 0 {
        queues.invalid("must be positive", errors);
    } else if count > MOST_QUEUES {
        queues.invalid(format!("must not be greater than {MOST_QUEUES}"), errors);
    }
    if size <= 0 {
        hand.invalid("must be positive", errors);
    } else if size > count {
        hand.invalid(format!("should not be greater than queues ({count})"), errors);
    } else if ((count as f64).log2() * size as f64).ceil() > HASH_BITS as f64 {
        let detail = format!(
            "required entropy bits of deckSize {count} and handSize {size} should not be greater than {HASH_BITS}"
        );
        hand.invalid(detail, errors);
    }
}
