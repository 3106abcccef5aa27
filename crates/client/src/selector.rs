//! Label selectors, as the API reads them.

use std::collections::BTreeMap;

use watchkeeper_wire::LabelSelector;

/// Which labels an object must have.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Selector(LabelSelector);

/// A label selector that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a label selector: {selector:?}: {problem}")]
#[non_exhaustive]
pub struct SelectorError {
    /// The selector.
    pub selector: String,
    /// The error in the selector.
    pub problem: String,
}

impl Selector {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Nothing at all selects everything.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let parsed = LabelSelector::parse(text);
        parsed.map(Self).map_err(|problem| SelectorError { selector: text.to_owned(), problem })
    }

    pub(crate) fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.0.matches_pairs(|key| labels?.get(key).map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Selector::parse(selector).unwrap().matches(Some(&labels))
    }

    #[test]
    fn every_operator_means_what_it_means_to_the_server() {
        let web = &[("app", "web"), ("tier", "")][..];
        for yes in [
            "",
            "app",
            "app=web",
            "app == web",
            "app!=db",
            "none!=x",
            "!none",
            "app in (a, web)",
            "app notin (a,b)",
            "none notin (a)",
            "tier=",
            "app in (web),tier,!x",
        ] {
            assert!(selects(yes, web), "{yes}");
        }
        for no in
            ["none", "app=db", "app!=web", "!app", "app in (a,b)", "app notin (web)", "none=", "none in (a)"]
        {
            assert!(!selects(no, web), "{no}");
        }
    }

    #[test]
    fn what_does_not_parse_is_told() {
        for bad in ["=a", "a in b", "a in (b", "a like (b)", "a,,b", "a=b c", "a b"] {
            assert!(Selector::parse(bad).is_err(), "{bad}");
        }
    }
}
