//! The status and headers of a response, as results.

use std::time::{Duration, SystemTime};

use http::header::{DATE, HeaderName, LOCATION, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use httpdate::parse_http_date;
use watchkeeper_core::Error;

use super::settings::shown;

/// Why an answer does not say what there is; `None` if it does, or says that nothing has changed.
pub(super) fn refusal(status: StatusCode, headers: &HeaderMap) -> Option<Error> {
    if status == StatusCode::OK || status == StatusCode::NOT_MODIFIED {
        return None;
    }
    let said = format!("the answer is {status}");
    let after = retry_after(headers);
    Some(match status.as_u16() {
        429 => Error::Throttled { after, reason: said },
        503 if after.is_some() => Error::Throttled { after, reason: said },
        401 | 403 | 407 => Error::Denied(said),
        404 | 410 => Error::Missing(said),
        300..=399 => {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).map(shown).unwrap_or_default();
            Error::Unavailable { answered: true, reason: format!("{said}, which is not followed, to {to}") }
        }
        // Of the moment, not of the request: it took too long, came over the wrong connection, or too early.
        408 | 421 | 425 => Error::Unavailable { answered: true, reason: said },
        400..=499 => Error::Fatal(said),
        _ => Error::Unavailable { answered: true, reason: said },
    })
}

/// The delay that a service asks for with `Retry-After`, an hour at most. A date is compared with the service's own clock.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds).min(LONGEST));
    }
    let after = date(headers, &RETRY_AFTER)?.duration_since(date(headers, &DATE)?).ok()?;
    Some(after.min(LONGEST))
}

/// The date in a header; `None` if there is none that can be read.
pub(super) fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

/// A service that asks for more than this is asked after this.
const LONGEST: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, headers: &[(&'static str, &'static str)]) -> Option<Error> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        refusal(StatusCode::from_u16(status).unwrap(), &map)
    }

    #[test]
    fn nothing_but_a_success_says_what_there_is() {
        assert_eq!(refused(200, &[]), None);
        assert_eq!(refused(304, &[]), None);
        for (status, class) in [
            (204, "unavailable"),
            (206, "unavailable"),
            (301, "unavailable"),
            (400, "fatal"),
            (401, "denied"),
            (403, "denied"),
            (404, "missing"),
            (408, "unavailable"),
            (410, "missing"),
            (418, "fatal"),
            (421, "unavailable"),
            (425, "unavailable"),
            (429, "throttled"),
            (500, "unavailable"),
            (503, "unavailable"),
        ] {
            assert_eq!(refused(status, &[]).unwrap().class(), class, "{status}");
        }
        let redirected = refused(302, &[("location", "https://me:word@login/?token=x")]).unwrap().to_string();
        assert!(redirected.contains("https://login/") && !redirected.contains("word"), "{redirected}");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_on_the_clock_of_the_service() {
        let after = |headers: &[_]| match refused(503, headers).unwrap() {
            Error::Throttled { after, .. } => after,
            other => panic!("{other}"),
        };
        assert_eq!(after(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(after(&[("retry-after", "7000000000")]), Some(LONGEST));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(
            after(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"), ("date", date)]),
            Some(Duration::from_secs(3))
        );
        for nonsense in
            ["soon", "Sun, 06 Nov 1994 9000000000000000000:00:00 GMT", "Sun, 06 Foo 1994 08:49:37 GMT"]
        {
            let refused = refused(503, &[("retry-after", nonsense), ("date", date)]).unwrap();
            assert_eq!(refused.class(), "unavailable", "{nonsense}");
        }
    }
}
