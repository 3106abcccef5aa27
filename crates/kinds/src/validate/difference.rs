//! Where two values differ, as kube-apiserver shows it.

use serde_json::Value;

/// How many lines are shown around a difference.
const CONTEXT: usize = 3;

/// A structure of kube-apiserver: its fields in their own order, with their own names.
pub(crate) enum Shown {
    /// A value that is the same in JSON.
    Plain(Value),
    /// A structure.
    Fields(Vec<(String, Shown)>),
}

impl Shown {
    /// A structure of these fields, taken from a JSON object: the name in Go and the name in JSON.
    pub(crate) fn of(object: &Value, fields: &[(&str, &str)], inner: impl Fn(&str, &Value) -> Self) -> Self {
        let field = |(go, json): &(&str, &str)| {
            ((*go).to_owned(), inner(json, object.get(*json).unwrap_or(&Value::Null)))
        };
        Self::Fields(fields.iter().map(field).collect())
    }

    fn write(&self, depth: usize, out: &mut String) {
        let indent = |depth: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        };
        match self {
            Self::Fields(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    indent(depth + 1, out);
                    out.push_str(&format!("{:?}: ", name));
                    value.write(depth + 1, out);
                }
                indent(depth, out);
                out.push('}');
            }
            Self::Plain(Value::Object(fields)) if !fields.is_empty() => {
                let fields = fields.iter().map(|(name, value)| (name.clone(), Self::Plain(value.clone())));
                Self::Fields(fields.collect()).write(depth, out);
            }
            Self::Plain(Value::Array(items)) if !items.is_empty() => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    indent(depth + 1, out);
                    Self::Plain(item.clone()).write(depth + 1, out);
                }
                indent(depth, out);
                out.push(']');
            }
            Self::Plain(value) => out.push_str(&value.to_string()),
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut text = String::new();
        self.write(0, &mut text);
        text.lines().map(str::to_owned).collect()
    }
}

/// The difference of two structures in the unified format, with lines that are alike found by longest runs first.
pub(crate) fn unified(old: &Shown, new: &Shown) -> String {
    let (old, new) = (old.lines(), new.lines());
    let mut runs = Vec::new();
    matching(&old, &new, (0, 0), &mut runs);
    runs.push((old.len(), new.len(), 0));
    let mut text = String::new();
    let mut changes: Vec<[usize; 4]> = Vec::new();
    let (mut left, mut right) = (0, 0);
    for (from, to, length) in runs {
        if from > left || to > right {
            changes.push([left, from, right, to]);
        }
        (left, right) = (from + length, to + length);
    }
    let mut rest = changes.as_slice();
    while let Some(first) = rest.first() {
        let is_near = |pair: &&[[usize; 4]]| pair[1][0] - pair[0][1] <= 2 * CONTEXT;
        let count = 1 + rest.windows(2).take_while(is_near).count();
        let (hunk, others) = rest.split_at(count);
        rest = others;
        let last = hunk.last().unwrap_or(first);
        let start = [first[0].saturating_sub(CONTEXT), first[2].saturating_sub(CONTEXT)];
        let end = [(last[1] + CONTEXT).min(old.len()), (last[3] + CONTEXT).min(new.len())];
        text.push_str(&format!("@@ -{} +{} @@\n", range(start[0], end[0]), range(start[1], end[1])));
        let mut write = |mark: char, lines: &[String]| {
            lines.iter().for_each(|line| text.push_str(&format!("{mark}{line}\n")));
        };
        let mut at = start[0];
        for [from, to, begin, end] in hunk {
            write(' ', &old[at..*from]);
            write('-', &old[*from..*to]);
            write('+', &new[*begin..*end]);
            at = *to;
        }
        write(' ', &old[at..end[0]]);
    }
    text
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => (start + 1).to_string(),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}

/// Finds the longest run of lines that are alike, then those before and after it.
fn matching(old: &[String], new: &[String], at: (usize, usize), runs: &mut Vec<(usize, usize, usize)>) {
    let mut best = (0, 0, 0);
    for from in 0..old.len() {
        for to in 0..new.len() {
            let length = old[from..].iter().zip(&new[to..]).take_while(|(old, new)| old == new).count();
            if length > best.2 {
                best = (from, to, length);
            }
        }
    }
    let (from, to, length) = best;
    if length == 0 {
        return;
    }
    matching(&old[..from], &new[..to], at, runs);
    runs.push((at.0 + from, at.1 + to, length));
    let (after_old, after_new) = (from + length, to + length);
    matching(&old[after_old..], &new[after_new..], (at.0 + after_old, at.1 + after_new), runs);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_shown_with_the_lines_around_it() {
        let shown = |value: i64| {
            Shown::Fields(
                (0..9)
                    .map(|at| (format!("F{at}"), Shown::Plain(json!(if at == 5 { value } else { at }))))
                    .collect(),
            )
        };
        let expected = "@@ -4,7 +4,7 @@\n \"F2\": 2,\n \"F3\": 3,\n \"F4\": 4,\n- \"F5\": 1,\n+ \"F5\": 2,\n \"F6\": 6,\n \"F7\": 7,\n \"F8\": 8\n";
        assert_eq!(unified(&shown(1), &shown(2)).replace("  \"", " \""), expected);
        assert_eq!(unified(&shown(1), &shown(1)), "");
    }

    #[test]
    fn lines_that_moved_are_found_by_the_longest_run() {
        let shown = |values: [Value; 3]| {
            let names = ["A", "B", "C"].into_iter().map(str::to_owned);
            Shown::Fields(names.zip(values.into_iter().map(Shown::Plain)).collect())
        };
        let (old, new) = (
            shown([json!({"x": 1}), json!(null), json!(0)]),
            shown([json!(null), json!({"x": 1}), json!(0)]),
        );
        let text = unified(&old, &new);
        assert!(text.starts_with("@@ -1,7 +1,7 @@\n {\n"), "{text}");
        assert_eq!(text.matches("\n+").count(), text.matches("\n-").count());
    }
}
