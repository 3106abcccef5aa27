//! What one server said beside what the other one said.

use std::collections::BTreeMap;
use std::fmt::Write;

use regex::Regex;

use super::answer::Outcome;
use super::case::Case;
use super::fixture::State;

/// How many examples of a class of differences are shown.
const EXAMPLES: usize = 5;

/// What the comparison came to.
#[derive(Debug, Default)]
pub struct Findings {
    /// How many cases both servers allow.
    pub allowed: usize,
    /// How many cases both servers refuse, and for the same reason.
    pub refused: usize,
    /// Cases that ours allows and the real one does not, or which show more here.
    pub exceptions: Vec<String>,
    /// The other differences, by what was said there and here.
    pub classes: BTreeMap<String, Vec<String>>,
    /// The differences that no line of the list explains.
    pub unknown: Vec<String>,
    /// The lines of the list that explain nothing.
    pub idle: Vec<String>,
}

impl Findings {
    /// Compares what was said `here` with what was recorded `there`.
    pub fn of(cases: &[Case], there: &[Outcome], here: &[Outcome], known: &[Known]) -> Self {
        let mut sum =
            Self { idle: known.iter().map(|known| known.line.clone()).collect(), ..Self::default() };
        for ((case, there), here) in cases.iter().zip(there).zip(here) {
            match (there == here, here.is_success()) {
                (true, true) => sum.allowed += 1,
                (true, false) => sum.refused += 1,
                _ if !here.is_within(there) => {
                    sum.exceptions.push(format!("{case}\n    there {there}\n    here {here}"));
                }
                // A watch shows what there is as it comes, and was cut off at some point.
                _ if (there.what.as_str(), here.what.as_str()) == ("watch", "watch") => sum.allowed += 1,
                _ => sum.differs(case, there, here, known),
            }
        }
        sum
    }

    fn differs(&mut self, case: &Case, there: &Outcome, here: &Outcome, known: &[Known]) {
        let shown = format!("{case}\n    there {there}\n    here {here}");
        match known.iter().find(|known| known.explains(case, there, here)) {
            Some(known) => self.idle.retain(|line| *line != known.line),
            None => self.unknown.push(shown.clone()),
        }
        let class = format!("{} {} -> {} {}", there.code, there.what, here.code, here.what);
        self.classes.entry(class).or_default().push(shown);
    }

    /// Everything for a person to read, the numbers last.
    pub fn report(&self, changes: &[String]) -> String {
        let mut text = String::new();
        let differing: usize = self.classes.values().map(Vec::len).sum();
        let asked = self.allowed + self.refused + differing + self.exceptions.len();
        for (title, list) in
            [("allowed here and not there", &self.exceptions), ("not as recorded", &self.unknown)]
        {
            if !list.is_empty() {
                let _ = writeln!(text, "## {title}: {}\n", list.len());
                for shown in list {
                    let _ = writeln!(text, "{shown}");
                }
                text.push('\n');
            }
        }
        for (class, cases) in &self.classes {
            let _ = writeln!(text, "## {class}: {}\n", cases.len());
            for shown in cases.iter().take(EXAMPLES) {
                let _ = writeln!(text, "{shown}");
            }
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "{asked} requests: {} allowed on both, {} refused on both with the same answer, {differing} refused or \
             answered differently ({} of them unknown), {} allowed here and not there, {} effects of what was refused",
            self.allowed,
            self.refused,
            self.unknown.len(),
            self.exceptions.len(),
            changes.len(),
        );
        text
    }
}

/// A line of `paths/known.txt`: `THERE -> HERE | PATTERN | REASON`.
#[derive(Debug)]
pub struct Known {
    line: String,
    there: Regex,
    here: Regex,
    pattern: Regex,
}

impl Known {
    /// Reads all lines of the list.
    pub fn parse(text: &str) -> Result<Vec<Self>, String> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(|line| Self::line(line).ok_or_else(|| format!("not understood: {line}"))).collect()
    }

    fn line(line: &str) -> Option<Self> {
        let (classes, rest) = line.split_once(" | ")?;
        let (there, here) = classes.split_once(" -> ")?;
        let (pattern, _) = rest.rsplit_once(" | ")?;
        let start = |pattern: &str| Regex::new(&format!("^(?:{})", pattern.trim())).ok();
        Some(Self {
            line: line.to_owned(),
            there: start(there)?,
            here: start(here)?,
            pattern: Regex::new(pattern.trim()).ok()?,
        })
    }

    fn explains(&self, case: &Case, there: &Outcome, here: &Outcome) -> bool {
        self.there.is_match(&there.to_string())
            && self.here.is_match(&here.to_string())
            && self.pattern.is_match(&case.to_string())
    }
}

/// What is there and was not, or the other way round, or is not as it was.
pub fn changes(before: &State, after: &State) -> Vec<String> {
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| format!("{name} is gone"));
    let changed = after.iter().filter_map(|(name, version)| match before.get(name) {
        None => Some(format!("{name} is new")),
        Some(earlier) => (earlier != version).then(|| format!("{name} has changed")),
    });
    gone.chain(changed).collect()
}
