use super::continue_token::Token;
use super::query::Query;
use super::rejected::Rejected;
use watchkeeper_schema::{FieldError, Path};
use watchkeeper_wire::{FieldSelector, LabelSelector};

/// What a list, a watch or the deletion of a collection is asked to take, from its query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// Which objects, by their labels.
    pub(crate) label_selector: LabelSelector,
    /// Which objects, by their fields. Whether the fields are supported is for the resource to say.
    pub(crate) field_selector: FieldSelector,
    /// Whether to watch instead of to list.
    pub(crate) watch: bool,
    /// Whether a watch may send bookmarks.
    pub(crate) allow_watch_bookmarks: bool,
    /// The version to read at or after; empty for the newest. Not checked to be a number.
    pub(crate) resource_version: String,
    /// How `resource_version` binds.
    pub(crate) resource_version_match: Option<VersionMatch>,
    /// How long a watch lives.
    pub(crate) timeout_seconds: Option<i64>,
    /// How many objects an answer may hold; zero and less for all.
    pub(crate) limit: i64,
    /// The token to go on from, undecoded; empty at the beginning.
    pub(crate) continue_token: String,
    /// Whether a watch begins with what is there. A watch that says nothing about it, and gives no version or `0`, begins
    /// so, and has `NotOlderThan` then.
    pub(crate) send_initial_events: Option<bool>,
}

/// How the version of a list binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    /// The state at that version, no other.
    Exact,
    /// The state at that version or a later one.
    NotOlderThan,
}

impl ListOptions {
    /// Reads and checks the options in a query.
    pub(crate) fn from_query(query: &Query) -> Result<Self, Rejected> {
        // Numbers first, as the errors of numbers come first.
        let timeout_seconds = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or_default();
        let labels = query.get("labelSelector").unwrap_or_default();
        let fields = query.get("fieldSelector").unwrap_or_default();
        let label_selector = LabelSelector::parse(labels).map_err(Rejected::BadRequest)?;
        let field_selector = FieldSelector::parse(fields).map_err(Rejected::BadRequest)?;
        let mut read = Self {
            label_selector,
            field_selector,
            watch: query.flag("watch").unwrap_or_default(),
            allow_watch_bookmarks: query.flag("allowWatchBookmarks").unwrap_or_default(),
            resource_version: query.text("resourceVersion"),
            resource_version_match: None,
            timeout_seconds,
            limit,
            continue_token: query.text("continue"),
            send_initial_events: query.flag("sendInitialEvents"),
        };
        let mut matching = query.get("resourceVersionMatch").unwrap_or_default();
        let is_from_now = matches!(read.resource_version.as_str(), "" | "0");
        if read.watch && is_from_now && read.send_initial_events.is_none() && matching.is_empty() {
            read.send_initial_events = Some(true);
            matching = "NotOlderThan";
        }
        read.resource_version_match = match matching {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        };
        let errors = if read.watch { read.watch_errors(matching) } else { read.list_errors(matching) };
        Rejected::unless_valid("ListOptions", errors)?;
        Ok(read)
    }

    /// Where to go on, if this is not the beginning. The token says which version it is of, so no other may be given.
    pub(crate) fn continuation(&self) -> Result<Option<Token>, Rejected> {
        if self.continue_token.is_empty() {
            return Ok(None);
        }
        let token = Token::decode(&self.continue_token)?;
        if !matches!(self.resource_version.as_str(), "" | "0") {
            let message = "specifying resource version is not allowed when using continue";
            return Err(Rejected::BadRequest(message.into()));
        }
        Ok(Some(token))
    }

    fn list_errors(&self, matching: &str) -> Vec<FieldError> {
        let at = Path::root().child("resourceVersionMatch");
        let mut errors = Vec::new();
        let mut forbid = |at: &Path, rule: &str| errors.push(FieldError::forbidden(at, rule));
        if !matching.is_empty() && self.resource_version.is_empty() {
            forbid(&at, "resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !matching.is_empty() && !self.continue_token.is_empty() {
            forbid(&at, "resourceVersionMatch is forbidden when continue is provided");
        }
        if self.resource_version_match == Some(VersionMatch::Exact) && self.resource_version == "0" {
            forbid(&at, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        if !matching.is_empty() && self.resource_version_match.is_none() {
            errors.push(FieldError::not_supported(&at, matching, ["Exact", "NotOlderThan", ""]));
        }
        if self.send_initial_events.is_some() {
            let at = Path::root().child("sendInitialEvents");
            errors.push(FieldError::forbidden(&at, "sendInitialEvents is forbidden for list"));
        }
        errors
    }

    fn watch_errors(&self, matching: &str) -> Vec<FieldError> {
        let at = Path::root().child("resourceVersionMatch");
        let is_newer = self.resource_version_match == Some(VersionMatch::NotOlderThan);
        let mut errors = Vec::new();
        let mut forbid = |rule: &str| errors.push(FieldError::forbidden(&at, rule));
        if self.send_initial_events.is_some() && !is_newer {
            forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if matching.is_empty() {
            return errors;
        }
        if self.send_initial_events.is_none() {
            forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        }
        if !is_newer {
            errors.push(FieldError::not_supported(&at, matching, ["NotOlderThan"]));
        }
        if !self.continue_token.is_empty() {
            let rule = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden(&at, rule));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{assert_recorded, recorded};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn options_are_read_and_refused_as_kube_apiserver_does() {
        for case in recorded(include_str!("cases/options.jsonl")) {
            if case["kind"] != "list" {
                continue;
            }
            let read = ListOptions::from_query(&Query::parse(case["query"].as_str().unwrap()));
            let value = read.map(|read| {
                let matching = match read.resource_version_match {
                    Some(VersionMatch::Exact) => "Exact",
                    Some(VersionMatch::NotOlderThan) => "NotOlderThan",
                    None => "",
                };
                json!({
                    "labelSelector": read.label_selector.to_string(),
                    "fieldSelector": read.field_selector.to_string(),
                    "watch": read.watch,
                    "allowWatchBookmarks": read.allow_watch_bookmarks,
                    "resourceVersion": read.resource_version,
                    "resourceVersionMatch": matching,
                    "timeoutSeconds": read.timeout_seconds,
                    "limit": read.limit,
                    "continue": read.continue_token,
                    "sendInitialEvents": read.send_initial_events,
                })
            });
            assert_recorded(&case, value);
        }
    }

    #[test]
    fn a_continued_list_has_the_version_of_its_token() {
        let token = Token { revision: Some(7), after: "a".into() };
        let continuation = |more: &str| {
            let query = Query::parse(&format!("continue={}{more}", token.encode()));
            ListOptions::from_query(&query).unwrap().continuation()
        };
        assert_eq!(continuation(""), Ok(Some(token.clone())));
        assert_eq!(continuation("&resourceVersion=0"), Ok(Some(token.clone())));
        assert_eq!(
            continuation("&resourceVersion=5").unwrap_err().message(),
            "specifying resource version is not allowed when using continue"
        );
        assert_eq!(ListOptions::default().continuation(), Ok(None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::request::cases(256)))]

        #[test]
        fn any_query_is_read_or_rejected(text in "((labelSelector|fieldSelector|limit|watch|resourceVersion|resourceVersionMatch|sendInitialEvents|continue|timeoutSeconds)=.{0,8}&){0,5}") {
            let _ = ListOptions::from_query(&Query::parse(&text));
        }
    }
}
