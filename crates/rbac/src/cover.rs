use std::collections::BTreeSet;

use crate::rule::{Texts, has, matches_path};
use crate::{Rule, User};

/// The rules of `wanted` that `held` does not cover, in pieces of one verb on one resource or path; empty if all are covered.
pub fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let pieces = wanted.iter().flat_map(pieces);
    pieces.filter(|piece| !held.iter().any(|rule| covers(rule, piece))).collect()
}

/// The message for a user who wants to grant more than they have: `missing` are the rules that they lack, `failures` the
/// errors of the lookup of their rules.
pub fn describe_missing(user: &User<'_>, missing: Vec<Rule>, failures: &[String]) -> String {
    let lines: BTreeSet<String> = compact(missing).iter().map(Rule::to_string).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let mut text = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        Texts(user.groups),
        lines.join("\n")
    );
    if let Some(failure) = crate::policy::joined(failures) {
        text.push_str(&format!("; resolution errors: [{failure}]"));
    }
    text
}

/// A rule as rules of one verb on one resource, of one name or none, or on one path.
fn pieces(rule: &Rule) -> Vec<Rule> {
    let mut pieces = Vec::new();
    let one = |text: &String| vec![text.clone()];
    for (group, resource) in
        rule.api_groups.iter().flat_map(|group| rule.resources.iter().map(move |resource| (group, resource)))
    {
        for verb in &rule.verbs {
            let piece = Rule {
                verbs: one(verb),
                api_groups: one(group),
                resources: one(resource),
                ..Rule::default()
            };
            if rule.resource_names.is_empty() {
                pieces.push(piece);
            } else {
                let named = |name| Rule { resource_names: one(name), ..piece.clone() };
                pieces.extend(rule.resource_names.iter().map(named));
            }
        }
    }
    for url in &rule.non_resource_urls {
        let verbs = rule.verbs.iter();
        pieces.extend(verbs.map(|verb| Rule {
            verbs: one(verb),
            non_resource_urls: one(url),
            ..Rule::default()
        }));
    }
    pieces
}

/// Whether a rule allows all that a piece allows.
fn covers(rule: &Rule, piece: &Rule) -> bool {
    let all = |held: &[String], wanted: &[String]| wanted.iter().all(|text| has(held, text));
    let verbs = has(&rule.verbs, "*") || all(&rule.verbs, &piece.verbs);
    let groups = has(&rule.api_groups, "*") || all(&rule.api_groups, &piece.api_groups);
    let names = rule.resource_names.is_empty()
        || !piece.resource_names.is_empty() && all(&rule.resource_names, &piece.resource_names);
    let resources = piece.resources.iter().all(|resource| {
        let of_all = resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        has(&rule.resources, "*")
            || has(&rule.resources, resource)
            || of_all.is_some_and(|of_all| has(&rule.resources, &of_all))
    });
    let urls = piece
        .non_resource_urls
        .iter()
        .all(|path| rule.non_resource_urls.iter().any(|url| matches_path(url, path)));
    verbs && groups && names && resources && urls
}

/// Joins pieces that differ in their verbs only.
fn compact(pieces: Vec<Rule>) -> Vec<Rule> {
    let mut joined: Vec<Rule> = Vec::new();
    for piece in pieces {
        let same = |known: &&mut Rule| {
            piece.non_resource_urls.is_empty()
                && known.non_resource_urls.is_empty()
                && known.api_groups == piece.api_groups
                && known.resources == piece.resources
                && known.resource_names == piece.resource_names
        };
        match joined.iter_mut().find(same) {
            Some(known) => known.verbs.extend(piece.verbs),
            None => joined.push(piece),
        }
    }
    joined
}
