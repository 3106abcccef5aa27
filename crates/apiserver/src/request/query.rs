use super::escape::{Part, unescape};
use super::rejected::Rejected;
use std::time::Duration;
use watchkeeper_go::quote;

/// More parameters than this, and none is read.
const MAX_PARAMETERS: usize = 10_000;

/// The parameters of a URL's query, decoded, in their order.
///
/// What cannot be decoded is left out without a word, and so is a pair with a semicolon in it: servers written in Go
/// never tell. Where a parameter stands several times, the first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads a query, as it was sent, without its question mark.
    pub(crate) fn parse(query: &str) -> Self {
        if query.bytes().filter(|byte| *byte == b'&').count() >= MAX_PARAMETERS {
            return Self::default();
        }
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(name, Part::Query).ok()?, unescape(value, Part::Query).ok()?))
        };
        let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        Self { pairs: pairs.filter_map(pair).collect() }
    }

    /// The parameters, in their order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Every value of a parameter, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs().filter(move |(known, _)| *known == name).map(|(_, value)| value)
    }

    /// A parameter as a text: empty if it is not there.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }

    /// A parameter as a choice: anything but `0` and `false` is a yes, nothing as well.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A parameter as a whole number; any other text, and an empty one, is a bad request.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Rejected> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number: Result<i64, _> = value.parse();
        number.map(Some).map_err(|error| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let problem = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            Rejected::BadRequest(format!("strconv.ParseInt: parsing {}: {problem}", quote(value)))
        })
    }

    /// `timeout`: how long the client is ready to wait. Nothing, zero and less leave it to the server.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Rejected> {
        let Some(value) = self.get("timeout").filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let nanoseconds = watchkeeper_go::duration::parse(value).map_err(|error| {
            Rejected::BadRequest(format!("invalid timeout specified in the request URL - {error}"))
        })?;
        Ok(u64::try_from(nanoseconds).ok().filter(|time| *time > 0).map(Duration::from_nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::recorded;
    use proptest::prelude::*;

    #[test]
    fn queries_are_read_as_go_reads_them() {
        for case in recorded(include_str!("cases/queries.jsonl")) {
            let query = Query::parse(case["in"].as_str().unwrap());
            let expected = case["values"].as_array().unwrap();
            for entry in expected {
                let values: Vec<&str> = query.all(entry[0].as_str().unwrap()).collect();
                assert_eq!(entry[1], serde_json::json!(values), "{case}");
            }
            let count: usize = expected.iter().map(|entry| entry[1].as_array().unwrap().len()).sum();
            assert_eq!(query.pairs().count(), count, "{case}");
        }
    }

    #[test]
    fn too_many_parameters_are_none() {
        assert_eq!(Query::parse(&"a&".repeat(9_999)).pairs().count(), 9_999);
        assert_eq!(Query::parse(&"a&".repeat(10_000)), Query::default());
    }

    #[test]
    fn a_timeout_is_a_duration_and_zero_is_none() {
        let timeout = |query: &str| Query::parse(query).timeout();
        assert_eq!(timeout("timeout=1.5s"), Ok(Some(Duration::from_millis(1500))));
        for none in ["", "timeout=", "timeout=0", "timeout=-5s"] {
            assert_eq!(timeout(none), Ok(None), "{none}");
        }
        assert_eq!(
            timeout("timeout=5").unwrap_err().message(),
            r#"invalid timeout specified in the request URL - time: missing unit in duration "5""#
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::request::cases(512)))]

        #[test]
        fn any_text_is_read_and_nothing_grows(text in any::<String>()) {
            let query = Query::parse(&text);
            let size: usize = query.pairs().map(|(name, value)| name.len() + value.len()).sum();
            prop_assert!(size <= 3 * text.len());
            let _ = (query.flag("a"), query.integer("a"), query.timeout());
        }

        #[test]
        fn what_is_written_is_read(pairs in proptest::collection::vec((any::<String>(), any::<String>()), 0..5)) {
            let escape = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
            let text: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
            prop_assert_eq!(Query::parse(&text.join("&")).pairs, pairs);
        }
    }
}
