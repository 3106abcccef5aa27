//! What the probes say.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::RwLock;

/// Says that all is well, or why not.
pub(crate) type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Named checks, of which one probe asks all.
#[derive(Clone, Default)]
pub(crate) struct Checks {
    checks: Arc<RwLock<BTreeMap<String, Check>>>,
}

/// What a probe is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) healthy: bool,
    pub(crate) text: String,
}

impl Checks {
    pub(crate) fn set(&self, name: impl Into<String>, check: Check) {
        self.checks.write().insert(name.into(), check);
    }

    /// Why it is not well: every check that fails, with its reason.
    pub(crate) fn failing(&self) -> Vec<(String, String)> {
        // A check is the user's code: it is not called under the lock.
        let checks = self.checks.read().clone();
        checks.into_iter().filter_map(|(name, check)| Some((name, ask(&check).err()?))).collect()
    }

    /// All checks, as Kubernetes' own probes are written: `ok`, or a line for each check.
    pub(crate) fn all(&self, verbose: bool) -> Finding {
        let checks = self.checks.read().clone();
        let mut lines = String::new();
        let mut healthy = true;
        for (name, check) in checks {
            // Writing to a String does not fail.
            let _ = match ask(&check) {
                Ok(()) => writeln!(lines, "[+]{name} ok"),
                Err(reason) => {
                    healthy = false;
                    writeln!(lines, "[-]{name} failed: {reason}")
                }
            };
        }
        let text = match (healthy, verbose) {
            (true, false) => "ok".to_owned(),
            (true, true) => format!("{lines}check passed\n"),
            (false, _) => format!("{lines}check failed\n"),
        };
        Finding { healthy, text }
    }

    /// One check; `None` if there is none of that name.
    pub(crate) fn one(&self, name: &str) -> Option<Finding> {
        let check = self.checks.read().get(name).cloned()?;
        Some(match ask(&check) {
            Ok(()) => Finding { healthy: true, text: "ok".to_owned() },
            Err(reason) => Finding { healthy: false, text: format!("{reason}\n") },
        })
    }
}

/// A check that panics fails.
fn ask(check: &Check) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| check())).unwrap_or_else(|_| Err("the check panicked".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_names_what_fails_and_why() {
        let checks = Checks::default();
        assert_eq!(checks.all(false), Finding { healthy: true, text: "ok".into() });
        checks.set("cache pods", Arc::new(|| Ok(())));
        checks.set("cache secrets", Arc::new(|| Err("denied".into())));
        let found = checks.all(false);
        assert!(!found.healthy);
        assert_eq!(found.text, "[+]cache pods ok\n[-]cache secrets failed: denied\ncheck failed\n");
        assert_eq!(checks.failing(), [("cache secrets".to_owned(), "denied".to_owned())]);
        assert!(checks.one("cache pods").unwrap().healthy);
        assert_eq!(checks.one("cache secrets").unwrap().text, "denied\n");
        assert_eq!(checks.one("other"), None);
    }

    #[test]
    fn a_check_that_panics_fails() {
        let checks = Checks::default();
        checks.set("mine", Arc::new(|| panic!("a mistake")));
        assert_eq!(checks.failing(), [("mine".to_owned(), "the check panicked".to_owned())]);
        assert!(!checks.all(false).healthy);
        assert!(!checks.one("mine").unwrap().healthy);
    }
}
