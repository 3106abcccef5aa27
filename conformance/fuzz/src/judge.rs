//! What is right and what is not.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;

use crate::{Answer, Broken, Request};

/// Something that must not happen.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The seed of the scenario.
    pub seed: u64,
    /// Which of its requests it was.
    pub place: usize,
    /// What happened.
    pub what: String,
    /// The request.
    pub request: Request,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, request {}: {}", self.seed, self.place, self.what)?;
        writeln!(f, "again with WATCHKEEPER_FUZZ_SEED={}", self.seed)?;
        writeln!(f, "{}", self.request)
    }
}

/// Answers of 500 that kube-apiserver gives as well: the lines of `known.txt`.
#[derive(Debug)]
pub struct Known(Vec<Regex>);

impl Known {
    /// Reads the list of this crate. Panics if it has a line that is no pattern.
    #[allow(clippy::expect_used, reason = "a part of this program")]
    pub fn read() -> Self {
        let lines = include_str!("../known.txt").lines().filter(|line| !line.starts_with('#'));
        let patterns = lines.filter_map(|line| line.split_once(" | "));
        Self(
            patterns
                .map(|(pattern, _)| Regex::new(pattern.trim()).expect("known.txt has patterns"))
                .collect(),
        )
    }

    /// Whether this message is one of them.
    pub fn has(&self, message: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(message))
    }
}

/// What came of all requests.
#[derive(Debug, Default)]
pub struct Tally {
    /// Answers by code; 0 is what could not be sent.
    pub codes: BTreeMap<u16, usize>,
    /// Requests by class, and how many of them were accepted.
    pub classes: BTreeMap<&'static str, (usize, usize)>,
    /// Answers to requests that came to a resource.
    pub deep: usize,
    /// Answers of 500, by what they said.
    pub failures: BTreeMap<String, usize>,
}

impl Tally {
    /// Takes note of an answer, and says what is wrong with it.
    pub fn judge(
        &mut self,
        class: &'static str,
        request: &Request,
        answer: &Result<Answer, Broken>,
    ) -> Option<String> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(broken) => return Some(broken.to_string()),
        };
        *self.codes.entry(answer.code).or_default() += 1;
        let (all, accepted) = self.classes.entry(class).or_default();
        *all += 1;
        *accepted += usize::from((200..300).contains(&answer.code));
        self.deep += usize::from(answer.is_deep());
        if answer.code == 500 {
            let message = answer.message();
            *self.failures.entry(message.clone()).or_default() += 1;
            return Some(format!("500: {message}"));
        }
        if !request.is_watch()
            && let Some(why) = answer.broken()
        {
            return Some(format!("an answer of {} {why}", answer.code));
        }
        None
    }

    /// How many requests there were.
    pub fn total(&self) -> usize {
        self.codes.values().sum()
    }

    /// How many of a hundred requests came to a resource.
    pub fn depth(&self) -> f64 {
        self.deep as f64 * 100.0 / self.total().max(1) as f64
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total().max(1);
        writeln!(f, "{} requests, {:.0} % of them came to a resource", self.total(), self.depth())?;
        for (code, count) in &self.codes {
            writeln!(f, "  {code}: {count} ({:.1} %)", *count as f64 * 100.0 / total as f64)?;
        }
        for (class, (all, accepted)) in &self.classes {
            writeln!(
                f,
                "  {class}: {all}, accepted {:.0} %",
                *accepted as f64 * 100.0 / (*all).max(1) as f64
            )?;
        }
        for (message, count) in &self.failures {
            writeln!(f, "  500, {count} times: {}", crate::cut(message.as_bytes(), 200))?;
        }
        Ok(())
    }
}
