//! Which metrics a query of Prometheus asks for.

use std::collections::BTreeSet;

use watchkeeper_description::Description;

/// Words of the language that are no metrics.
const WORDS: [&str; 15] = [
    "and",
    "or",
    "unless",
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "offset",
    "bool",
    "inf",
    "nan",
    "start",
    "end",
];
/// What Prometheus itself records of every target.
const ALWAYS: [&str; 1] = ["up"];

/// The metrics that a program has.
pub(crate) struct Known(BTreeSet<String>);

impl Known {
    /// Those of a description, with the series that histograms have.
    pub(crate) fn of(description: &Description) -> Self {
        let mut known: BTreeSet<String> = ALWAYS.map(str::to_owned).into();
        for metric in &description.metrics {
            known.insert(metric.name.clone());
            if metric.kind == "histogram" {
                known.extend(["bucket", "count", "sum"].map(|suffix| format!("{}_{suffix}", metric.name)));
            }
        }
        Self(known)
    }

    /// Whether all metrics of a query are among them.
    pub(crate) fn has_all(&self, query: &str) -> bool {
        metrics(query).iter().all(|metric| self.0.contains(metric))
    }
}

/// The metrics that a query asks for. Of queries as they are written here, without names in quotes and without functions of labels.
pub(crate) fn metrics(query: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = query;
    while let Some(next) = rest.chars().next() {
        let skipped = |end: char| rest.find(end).map_or("", |at| &rest[at + 1..]);
        match next {
            // Labels and ranges name no metrics.
            '{' => rest = skipped('}'),
            '[' => rest = skipped(']'),
            next if next.is_ascii_digit() => {
                rest = rest.trim_start_matches(|char: char| char.is_ascii_alphanumeric() || char == '.');
            }
            next if next.is_ascii_alphabetic() || next == '_' => {
                let end =
                    rest.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_' || char == ':'));
                let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
                let lists_labels =
                    matches!(name, "by" | "without" | "on" | "ignoring" | "group_left" | "group_right");
                let is_call = after.trim_start().starts_with('(');
                // `sum by (controller) (...)`
                let next = after.trim_start();
                let is_aggregation = next.starts_with("by ") || next.starts_with("without ");
                if !is_call && !is_aggregation && !WORDS.contains(&name) {
                    found.insert(name.to_owned());
                }
                rest = match lists_labels && is_call {
                    true => after.find(')').map_or("", |at| &after[at + 1..]),
                    false => after,
                };
            }
            next => rest = &rest[next.len_utf8()..],
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_told_from_functions_and_labels() {
        let of = |query: &str| metrics(query).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(of("sum by (controller) (rate(a_total{job=\"x\", le=~\"b\"}[5m])) / 0.5e3"), "a_total");
        assert_eq!(of("histogram_quantile(0.99, sum by (le) (rate(b_bucket[5m])))"), "b_bucket");
        assert_eq!(of("a - on (pod) group_left (node) b offset 5m unless c > 10"), "a b c");
        assert_eq!(of("absent(up{job=\"x\"} == 1)"), "up");
    }
}
