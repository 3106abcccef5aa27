//! The clauses of an `Accept` header, in the order a client prefers them.

/// More clauses than this are put in order by another way.
const FEW: usize = 12;

/// One alternative in an `Accept` header: `application/json;q=0.9;as=Table`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clause<'a> {
    pub(super) main: &'a str,
    pub(super) sub: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// Reads one clause; what is no media type is passed over.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';');
        let kind = trim(parts.next().unwrap_or_default());
        let (main, sub) = match kind.split_once('/') {
            None | Some((_, "")) if trim(kind.trim_end_matches('/')) == "*" => ("*", "*"),
            None | Some((_, "")) => return None,
            Some((main, sub)) => (trim(main), trim(lone(sub, '/')?)),
        };
        let mut clause = Self { main, sub, quality: 1.0, parameters: Vec::new() };
        for part in parts {
            let Some((name, value)) = part.split_once('=').filter(|(_, value)| !value.is_empty()) else {
                continue;
            };
            match (trim(name), lone(value, '=')) {
                (_, None) => {}
                ("q", Some(value)) => clause.quality = value.parse().unwrap_or_default(),
                (name, Some(value)) => clause.parameters.push((name, trim(value))),
            }
        }
        Some(clause)
    }

    /// The value of a parameter, the last if there are several.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Whether this clause comes before another that stands in front of it. This is no order: a vague type of higher
    /// quality and a plain one of lower quality each come before the other, and it depends on which came first.
    fn precedes(&self, other: &Self) -> bool {
        self.quality > other.quality
            || (self.main != "*" && other.main == "*")
            || (self.sub != "*" && other.sub == "*")
    }
}

/// The clauses of a header, the preferred ones first, in the order that Go's library for this puts them.
pub(super) fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(Clause::parse).collect();
    if clauses.len() > FEW {
        let vagueness = |clause: &Clause<'_>| (clause.main == "*", clause.sub == "*");
        clauses.sort_by(|one, other| {
            let by_quality = other.quality.total_cmp(&one.quality);
            by_quality.then_with(|| vagueness(one).cmp(&vagueness(other)))
        });
        return clauses;
    }
    for end in 1..clauses.len() {
        for at in (1..=end).rev() {
            if !clauses[at].precedes(&clauses[at - 1]) {
                break;
            }
            clauses.swap(at, at - 1);
        }
    }
    clauses
}

/// The text before a separator that nothing follows, or the text without one.
fn lone(text: &str, separator: char) -> Option<&str> {
    match text.split_once(separator) {
        None => Some(text),
        Some((text, "")) => Some(text),
        Some(_) => None,
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches(' ')
}
