//! `allOf`, `anyOf`, `oneOf` and `not`.

use super::walk::Walk;
use crate::FieldError;
use crate::schema::Node;
use crate::trail::Trail;
use serde_json::Value;
use watchkeeper_go as go;

impl Walk<'_> {
    /// Branches are judged as if the value were new: what was wrong before is not tolerated inside of them.
    pub(super) fn branches(&mut self, node: &Node, value: &Value, at: &Trail<'_>) -> usize {
        let checks = &node.checks;
        let mut passed = 1;
        if !checks.any_of.is_empty() {
            passed += self.any_of(&checks.any_of, value, at);
        }
        if !checks.one_of.is_empty() {
            passed += self.one_of(&checks.one_of, value, at);
        }
        if !checks.all_of.is_empty() {
            passed += self.all_of(&checks.all_of, value, at);
        }
        if let Some(not) = &checks.not
            && self.try_branch(not, value, at).is_valid
        {
            self.composite(at, |name| format!("{name} must not validate the schema (not)"));
        }
        passed
    }

    fn any_of(&mut self, branches: &[Node], value: &Value, at: &Trail<'_>) -> usize {
        let mut best: Option<(usize, &Node)> = None;
        for branch in branches {
            let tried = self.try_branch(branch, value, at);
            if tried.is_valid {
                return tried.passed;
            }
            if best.is_none_or(|(most, _)| tried.passed > most) {
                best = Some((tried.passed, branch));
            }
        }
        self.composite(at, |name| format!("{name} must validate at least one schema (anyOf)"));
        self.show(best, value, at)
    }

    fn one_of(&mut self, branches: &[Node], value: &Value, at: &Trail<'_>) -> usize {
        let mut best: Option<(usize, &Node)> = None;
        let mut valid = 0;
        let mut first_valid = 0;
        for branch in branches {
            let tried = self.try_branch(branch, value, at);
            if tried.is_valid {
                valid += 1;
                if valid == 1 {
                    first_valid = tried.passed;
                }
                best = None;
            } else if valid == 0 && best.is_none_or(|(most, _)| tried.passed > most) {
                best = Some((tried.passed, branch));
            }
        }
        if valid == 1 {
            return first_valid;
        }
        let found = match valid {
            0 => "Found none valid".to_owned(),
            several => format!("Found {several} valid alternatives"),
        };
        self.composite(at, |name| format!("{name} must validate one and only one schema (oneOf). {found}"));
        self.show(best, value, at)
    }

    fn all_of(&mut self, branches: &[Node], value: &Value, at: &Trail<'_>) -> usize {
        let mut passed = 0;
        let mut valid = 0;
        for branch in branches {
            let failures = self.failures;
            passed += self.checks(branch, value, at, None);
            valid += usize::from(self.failures == failures);
        }
        if valid < branches.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.composite(at, |name| format!("{name} must validate all the schemas (allOf){none}"));
        }
        passed
    }

    /// Puts the errors of the best of the failed branches into words.
    fn show(&mut self, best: Option<(usize, &Node)>, value: &Value, at: &Trail<'_>) -> usize {
        let Some((passed, branch)) = best else {
            return 0;
        };
        if !self.silent {
            self.checks(branch, value, at, None);
        }
        passed
    }

    fn try_branch(&mut self, branch: &Node, value: &Value, at: &Trail<'_>) -> Tried {
        let mut silent = Walk::silent(self.base);
        let passed = silent.checks(branch, value, at, None);
        Tried { passed, is_valid: silent.failures == 0 }
    }

    /// An error about several schemas at once; it names its place in the sentence only.
    fn composite(&mut self, at: &Trail<'_>, detail: impl FnOnce(&str) -> String) {
        self.fail(|base| FieldError::invalid(base, "", detail(&go::quote(&at.name()))));
    }
}

struct Tried {
    passed: usize,
    is_valid: bool,
}
