//! ETag and Last-Modified of a response, for conditional requests.

use std::time::{Duration, SystemTime};

use http::header::{DATE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};

use super::answer::date;

/// So many times in a row a service is asked whether a weak validator still holds; then for all of it.
const TRUST_IN_WEAK: u32 = 10;
/// So many answers that are older than one that was seen are passed over; then the service has really gone back.
const TRUST_IN_TIME: u32 = 3;
/// A date says the second. What changes within it, or within the next because of a cache, has the same one.
const GRAIN: Duration = Duration::from_secs(2);

/// The validators of the newest answer.
#[derive(Debug, Default)]
pub(super) struct Validators {
    tag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
    /// How often a weak validator was asked for in a row.
    weakly: u32,
    /// The newest `Last-Modified` that was seen.
    newest: Option<SystemTime>,
    /// How many older answers came in a row.
    older: u32,
}

impl Validators {
    /// Adds the headers that ask whether the last answer still holds.
    pub(super) fn ask(&mut self, headers: &mut HeaderMap) {
        if let Some(tag) = &self.tag {
            if tag.as_bytes().starts_with(b"W/") {
                self.weakly += 1;
                if self.weakly.is_multiple_of(TRUST_IN_WEAK) {
                    return;
                }
            }
            headers.insert(IF_NONE_MATCH, tag.clone());
        } else if let Some(modified) = &self.modified {
            headers.insert(IF_MODIFIED_SINCE, modified.clone());
        }
    }

    /// Whether an answer is older than one that was seen: a replica or a cache that is behind.
    pub(super) fn is_outdated(&mut self, headers: &HeaderMap) -> bool {
        let said = date(headers, &LAST_MODIFIED);
        if self.older < TRUST_IN_TIME && said < self.newest && said.is_some() {
            self.older += 1;
            return true;
        }
        self.older = 0;
        self.newest = said.or(self.newest);
        false
    }

    /// Takes over the validators of an answer that was used.
    pub(super) fn learn(&mut self, headers: &HeaderMap) {
        self.tag = headers.get(ETAG).cloned();
        self.weakly = 0;
        let grown_cold = match (date(headers, &LAST_MODIFIED), date(headers, &DATE)) {
            (Some(modified), Some(now)) => now.duration_since(modified).is_ok_and(|age| age > GRAIN),
            _ => false,
        };
        self.modified = headers.get(LAST_MODIFIED).filter(|_| grown_cold).cloned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    fn asked(validators: &mut Validators) -> Vec<String> {
        let mut headers = HeaderMap::new();
        validators.ask(&mut headers);
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn a_tag_is_better_than_a_date() {
        let mut validators = Validators::default();
        assert!(asked(&mut validators).is_empty());
        let modified = ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        validators.learn(&answer(&[("etag", "\"a\""), modified, ("date", "Sun, 06 Nov 1994 09:00:00 GMT")]));
        assert_eq!(asked(&mut validators), ["if-none-match: \"a\""]);
        validators.learn(&answer(&[modified, ("date", "Sun, 06 Nov 1994 09:00:00 GMT")]));
        assert_eq!(asked(&mut validators), ["if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT"]);
        validators.learn(&answer(&[modified, ("date", "Sun, 06 Nov 1994 08:49:39 GMT")]));
        assert!(asked(&mut validators).is_empty(), "it may change within this second");
        validators.learn(&answer(&[modified]));
        assert!(asked(&mut validators).is_empty(), "who knows");
    }

    #[test]
    fn behind_a_weak_tag_all_is_asked_for_from_time_to_time() {
        let mut validators = Validators::default();
        validators.learn(&answer(&[("etag", "W/\"a\"")]));
        let without = (0..30).filter(|_| asked(&mut validators).is_empty()).count();
        assert_eq!(without, 3);
    }

    #[test]
    fn an_answer_that_is_older_than_one_before_is_passed_over_but_not_for_ever() {
        let mut validators = Validators::default();
        let old = answer(&[("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        let new = answer(&[("last-modified", "Sun, 06 Nov 1994 08:49:38 GMT")]);
        assert!(!validators.is_outdated(&old) && !validators.is_outdated(&new));
        assert!(!validators.is_outdated(&HeaderMap::new()), "nothing is said");
        assert!(validators.is_outdated(&old) && !validators.is_outdated(&new));
        let passed_over: Vec<bool> = (0..5).map(|_| validators.is_outdated(&old)).collect();
        assert_eq!(passed_over, [true, true, true, false, false]);
    }
}
