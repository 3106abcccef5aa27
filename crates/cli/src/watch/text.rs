//! Changes as lines for people.

use std::fmt::Write;

use jiff::tz::TimeZone;
use serde_json::Value;
use watchkeeper_core::ChangeKind;
use watchkeeper_diff::{Difference, Wording};

use super::report::{Report, What};
use super::secret;
use super::target::Target;
use crate::terminal::one_line;

/// How lines look.
pub(super) struct Style {
    pub(super) colour: bool,
    /// Whether to say the kind: there are several.
    pub(super) kinds: bool,
    /// Whether to show all fields of a change, and more of their values.
    pub(super) long: bool,
    pub(super) zone: TimeZone,
}

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const DIM: &str = "2";
const BOLD: &str = "1";

/// Of a change with more fields than this, the first are shown.
const MOST_FIELDS: usize = 20;

impl Style {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// The lines of a change: one if one field changed, otherwise one for each field below the first.
    pub(super) fn lines(&self, report: &Report, target: &Target) -> String {
        let time = report.time.to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string();
        let colour = match report.what {
            What::Present => DIM,
            What::Happened(ChangeKind::Added) => GREEN,
            What::Happened(ChangeKind::Modified) => YELLOW,
            What::Happened(ChangeKind::Deleted) => RED,
        };
        let word = self.paint(colour, &format!("{:<8}", report.what.word()));
        let kind = if self.kinds { format!("{} ", one_line(target.label())) } else { String::new() };
        let name = self.paint(BOLD, &one_line(&report.key.to_string()));
        let mut text = format!("{}  {word}  {kind}{name}", self.paint(DIM, &time));
        if !report.managers.is_empty() {
            let _ = write!(
                text,
                "  {}",
                self.paint(DIM, &format!("by {}", one_line(&report.managers.join(", "))))
            );
        }
        if target.is_event()
            && let Some(summary) = report.object.as_deref().and_then(event)
        {
            let _ = writeln!(text, "  {}", one_line(&summary));
            return text;
        }
        match report.differences.as_slice() {
            [] => text.push('\n'),
            [only] => {
                let _ = writeln!(text, "  {}", self.field(only, report.secret));
            }
            several => {
                text.push('\n');
                let most = if self.long { several.len() } else { MOST_FIELDS };
                for difference in several.iter().take(most) {
                    let _ = writeln!(text, "          {}", self.field(difference, report.secret));
                }
                if several.len() > most {
                    let rest =
                        format!("... and {} more (--all-fields or -o json show them)", several.len() - most);
                    let _ = writeln!(text, "          {}", self.paint(DIM, &rest));
                }
            }
        }
        text
    }

    fn field(&self, difference: &Difference, hidden: bool) -> String {
        let Wording { path, from, to } = Wording::of(difference, if self.long { 400 } else { 60 });
        match (from, to) {
            (Some(from), Some(to)) => {
                let changed = if hidden && secret::is_secret(&difference.path.0) { " changed" } else { "" };
                format!("{path}: {} -> {}{changed}", self.paint(RED, &from), self.paint(GREEN, &to))
            }
            (None, Some(to)) => self.paint(GREEN, &format!("+ {path}: {to}")),
            (Some(from), None) => self.paint(RED, &format!("- {path}: {from}")),
            (None, None) => path,
        }
    }
}

/// What an Event says: that is its content, whatever became of its counters.
fn event(object: &Value) -> Option<String> {
    let text = |name: &str| object[name].as_str().filter(|text| !text.is_empty());
    let about =
        if object["involvedObject"].is_object() { &object["involvedObject"] } else { &object["regarding"] };
    let kind = about["kind"].as_str().unwrap_or_default();
    let name = about["name"].as_str().unwrap_or_default();
    let message = text("message").or_else(|| text("note"))?;
    let count =
        object["count"].as_u64().or_else(|| object["series"]["count"].as_u64()).filter(|&count| count > 1);
    let count = count.map(|count| format!(" (x{count})")).unwrap_or_default();
    Some(format!(
        "{} {} {kind}/{name}: {message}{count}",
        text("type").unwrap_or("-"),
        text("reason").unwrap_or("-")
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_told_by_its_message() {
        for (object, expected) in [
            (
                json!({"involvedObject": {"kind": "Pod", "name": "web"}, "type": "Warning", "reason": "BackOff", "message": "no\nway", "count": 3}),
                Some("Warning BackOff Pod/web: no\nway (x3)"),
            ),
            (json!({"regarding": {"kind": "Node", "name": "n"}, "note": "up"}), Some("- - Node/n: up")),
            (json!({}), None),
        ] {
            assert_eq!(event(&object).as_deref(), expected);
        }
    }
}
