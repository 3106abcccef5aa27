//! The cases: which requests are sent, and by whom.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::change;
use super::draft::{Draft, any_user};
use super::random::Random;
use super::user::{Rule, USERS};

/// How many requests there are, all of them different.
pub const CASES: usize = 24_000;

/// Where the random numbers begin. Another seed is another set of cases, and needs another record.
const SEED: u64 = 13;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// Who sends it.
    pub user: &'static str,
    /// On whose behalf.
    pub impersonated: Option<&'static str>,
    /// The method.
    pub method: &'static str,
    /// Whether it is made from a request for a resource, rather than for something about the server.
    pub is_resource: bool,
    /// The path, as it is sent.
    pub path: String,
    /// The query, without the question mark.
    pub query: String,
    /// The media type of the body; empty for none.
    pub content_type: &'static str,
    /// The body, as it is sent in earnest.
    pub body: String,
}

impl Case {
    /// All cases, in their order: the same ones every time.
    pub fn all() -> Vec<Self> {
        let mut random = Random::new(SEED);
        let (mut cases, mut seen) = (Vec::new(), HashSet::new());
        while cases.len() < CASES {
            let case = Self::next(&mut random);
            if seen.insert(case.clone()) {
                cases.push(case);
            }
        }
        cases
    }

    fn next(random: &mut Random) -> Self {
        let user = any_user(random);
        let rules = user.read();
        let rule = (!rules.is_empty()).then(|| &rules[random.below(rules.len())]);
        if random.chance(4) || rule.is_some_and(|rule| !rule.paths.is_empty() && random.chance(80)) {
            let (method, path) = change::other(random);
            return Self {
                user: user.name,
                impersonated: None,
                method,
                is_resource: false,
                path,
                query: String::new(),
                content_type: "",
                body: String::new(),
            };
        }
        let draft = match rule {
            Some(rule) if rule.verbs == ["impersonate"] => impersonating(random, user.name, rule),
            Some(rule) if rule.paths.is_empty() && random.chance(92) => Draft::aimed(random, user, rule),
            _ => Draft::any(random, user),
        };
        Self::of(random, draft)
    }

    /// Changes a request in some way, or not at all, and spells it.
    fn of(random: &mut Random, mut draft: Draft) -> Self {
        let changes = match random.below(100) {
            0..=44 => 0,
            45..=84 => 1,
            85..=95 => 2,
            _ => 3,
        };
        for _ in 0..changes {
            change::part(random, &mut draft);
        }
        draft.set_body(random);
        if random.chance(5) {
            change::body(random, &mut draft);
        }
        if draft.prefix == Some("watch") || draft.query.iter().any(|part| part.contains("atch=")) {
            draft.query.push("timeoutSeconds=1".to_owned());
        }
        let segments = draft.segments();
        let path = match random.chance(20) {
            true => change::spelling(random, &segments),
            false => format!("/{}", segments.join("/")),
        };
        Self {
            user: draft.user.name,
            impersonated: draft.impersonated,
            method: draft.method,
            is_resource: true,
            path,
            query: draft.query.join("&"),
            content_type: draft.content_type,
            body: draft.body,
        }
    }

    /// Whether this changes something unless it is a dry run.
    pub fn is_write(&self) -> bool {
        !matches!(self.method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "get")
    }

    /// Whether the answer may go on until it is told to end.
    pub fn is_watch(&self) -> bool {
        self.query.contains("timeoutSeconds=")
    }

    /// The path with its query.
    pub fn target(&self, is_dry_run: bool) -> String {
        let dry = if is_dry_run { "dryRun=All" } else { "" };
        let query =
            [self.query.as_str(), dry].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        match query.as_slice() {
            [] => self.path.clone(),
            query => format!("{}?{}", self.path, query.join("&")),
        }
    }

    /// The body. Options in the body of a deletion are taken instead of those in the query.
    pub fn body(&self, is_dry_run: bool) -> String {
        if !is_dry_run || !self.method.eq_ignore_ascii_case("DELETE") {
            return self.body.clone();
        }
        match serde_json::from_str(&self.body) {
            Ok(Value::Object(mut options)) => {
                options.insert("dryRun".to_owned(), json!(["All"]));
                Value::Object(options).to_string()
            }
            _ => self.body.clone(),
        }
    }

    /// A number that is another one if anything about the cases is.
    pub fn fingerprint(cases: &[Self]) -> u64 {
        // FNV-1a
        let text = cases.iter().map(|case| format!("{case:?}\n"));
        text.flat_map(String::into_bytes)
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.user)?;
        if let Some(other) = self.impersonated {
            write!(f, " as {other}")?;
        }
        write!(f, ": {} {}", self.method, self.target(false))?;
        if !self.body.is_empty() {
            let start: String = self.body.chars().take(60).collect();
            write!(f, " [{}] {start}", self.content_type)?;
        }
        Ok(())
    }
}

/// A request on behalf of somebody whom this user may act for, or of somebody else.
fn impersonating(random: &mut Random, name: &'static str, rule: &Rule) -> Draft {
    let other = match random.chance(80) {
        true => USERS.iter().find(|user| rule.names.contains(&user.name) && random.chance(50)),
        false => None,
    };
    let other = other.unwrap_or_else(|| any_user(random));
    let mut draft = match other.read().as_slice() {
        [] => Draft::any(random, other),
        rules => {
            let rule = &rules[random.below(rules.len())];
            if rule.resources.is_empty() {
                Draft::any(random, other)
            } else {
                Draft::aimed(random, other, rule)
            }
        }
    };
    draft.impersonated = Some(other.name);
    draft.user = USERS.iter().find(|user| user.name == name).unwrap_or(draft.user);
    draft
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_are_the_same_every_time() {
        let (first, second) = (Case::all(), Case::all());
        assert_eq!(Case::fingerprint(&first), Case::fingerprint(&second));
        assert_eq!(first.len(), CASES);
    }

    #[test]
    fn every_user_and_every_method_takes_part() {
        let cases = Case::all();
        for user in USERS {
            let count = cases.iter().filter(|case| case.user == user.name).count();
            assert!(count > 100, "{}: {count} cases", user.name);
        }
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FOO", "get"] {
            assert!(cases.iter().any(|case| case.method == method), "{method}");
        }
    }
}
