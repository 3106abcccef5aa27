//! Names of things that are no objects.

use super::field::{Errors, Field};
use crate::NameRule;
use watchkeeper_schema::FieldError;
use watchkeeper_schema::metadata::{dns_label_problems, dns_subdomain_problems, label_key_problems};

/// The longest names of drivers, and of the domains of signers.
const LONGEST_DRIVER: i64 = 63;
const LONGEST_DOMAIN: i64 = 253;

/// The name of a driver, in whatever case.
pub(crate) fn driver(name: &Field<'_>, errors: &mut Errors) {
    if !name.required(errors) {
        return;
    }
    if name.text().len() as i64 > LONGEST_DRIVER {
        errors.push(FieldError::too_long(&name.at, LONGEST_DRIVER));
    }
    dns_subdomain_problems(&name.text().to_lowercase())
        .into_iter()
        .for_each(|problem| name.invalid(problem, errors));
}

/// A name that may say whose it is, in whatever case.
pub(crate) fn qualified(name: &Field<'_>, errors: &mut Errors) {
    if name.required(errors) {
        let lower = name.text().to_lowercase();
        for problem in label_key_problems(&lower) {
            errors.push(FieldError::invalid(&name.at, lower.as_str(), problem));
        }
    }
}

/// Something that can be a part of a path.
pub(crate) fn path_segment(name: &Field<'_>, errors: &mut Errors) {
    NameRule::PathSegment.problems(name.text()).into_iter().for_each(|problem| name.invalid(problem, errors));
}

/// The name of who signs: a domain and a path.
pub(crate) fn signer(name: &Field<'_>, errors: &mut Errors) {
    if !name.required(errors) {
        return;
    }
    let Some((domain, path)) = name.text().split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return name.invalid(detail, errors);
    };
    if domain.len() as i64 > LONGEST_DOMAIN {
        errors.push(FieldError::too_long(&name.at, LONGEST_DOMAIN));
    }
    first_bad(name, domain, dns_label_problems, errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(&name.at, domain, detail));
    }
    first_bad(name, path, dns_subdomain_problems, errors);
    let longest = LONGEST_DOMAIN + 1 + LONGEST_DOMAIN + 1 + LONGEST_DRIVER;
    if name.text().len() as i64 > longest {
        errors.push(FieldError::too_long(&name.at, longest));
    }
}

/// What is wrong with the first bad label of a name; the others would say the same.
fn first_bad(name: &Field<'_>, labels: &str, problems: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let bad =
        labels.split('.').map(|label| (label, problems(label))).find(|(_, problems)| !problems.is_empty());
    for problem in bad.iter().flat_map(|(_, problems)| problems) {
        let label = bad.as_ref().map_or("", |(label, _)| label);
        let detail = format!("validating label {label:?}: {problem}");
        errors.push(FieldError::invalid(&name.at, labels, detail));
    }
}

/// A group, a kind and a name.
pub(crate) fn typed_reference(reference: &Field<'_>, errors: &mut Errors) {
    reference.get("apiGroup").dns_subdomain(errors);
    for part in ["kind", "name"] {
        if reference.get(part).required(errors) {
            path_segment(&reference.get(part), errors);
        }
    }
}

/// A domain and a path, such as `acme.io/foo`.
pub(crate) fn domain_prefixed(text: &Field<'_>, errors: &mut Errors) {
    let is_prefixed = text
        .text()
        .split_once('/')
        .is_some_and(|(domain, path)| dns_subdomain_problems(domain).is_empty() && !path.is_empty());
    if !is_prefixed {
        text.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")", errors);
    }
}
