//! Reads the whole list once: requests, pages, validators.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CACHE_CONTROL, LINK};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use serde_json::Value;
use watchkeeper_core::Error;

use super::items::Items;
use super::settings::{Pages, Settings, Waiting, shown, with_parameter};
use super::transport::{self, Transport};
use super::validators::Validators;
use super::{answer, credentials};
use crate::print::Print;

/// A list with more pages than this is taken for one that never ends.
const MAX_PAGES: usize = 10_000;
/// So often pages are read until they come out the same twice.
const MAX_PASSES: usize = 5;

/// What the service says.
#[derive(Debug)]
pub(super) enum Listing {
    Unchanged,
    Items(Items),
}

/// Asks one service, and remembers what it needs for the next time.
pub(super) struct Asker {
    url: Uri,
    transport: Arc<Transport>,
    validators: Validators,
    /// The index of the last answer.
    index: Option<u64>,
    /// What the last list was.
    known: Option<Print>,
    /// Whether the list that was read last had one page only.
    single_page: bool,
}

impl Asker {
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let bad = |why: &str| Error::Fatal(format!("{}: {why}", settings.name));
        let url: Uri = settings.url.parse().map_err(|_| bad("this is no URL"))?;
        if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none_or(str::is_empty) {
            return Err(bad("expected http:// or https:// and a host"));
        }
        let transport = Arc::new(Transport::new(settings)?);
        Ok(Self {
            url,
            transport,
            validators: Validators::default(),
            index: None,
            known: None,
            single_page: false,
        })
    }

    pub(super) fn transport(&self) -> &Arc<Transport> {
        &self.transport
    }

    /// Asks for the list. The first time for all of it, later only if it has changed, if there is a way to ask that.
    pub(super) async fn ask(&mut self, settings: &Settings) -> Result<Listing, Error> {
        let listing = match settings.pages {
            Pages::One => self.one_page(settings).await,
            Pages::Link | Pages::Next(_) => self.stable_pages(settings).await,
            Pages::Token { .. } => self.pages(settings).await.map(Listing::Items),
        };
        let listing = listing.map_err(|error| in_context(&settings.name, error))?;
        match listing {
            Listing::Items(items) if self.known == Some(items.print()) && items.rejections.is_empty() => {
                Ok(Listing::Unchanged)
            }
            Listing::Items(items) => {
                self.known = Some(items.print());
                Ok(Listing::Items(items))
            }
            Listing::Unchanged => Ok(Listing::Unchanged),
        }
    }

    async fn one_page(&mut self, settings: &Settings) -> Result<Listing, Error> {
        let mut headers = self.headers(settings).await?;
        let mut url = self.url.clone();
        let mut timeout = settings.timeout;
        if self.known.is_some() {
            self.validators.ask(&mut headers);
            if let Some(waiting) = &settings.waiting {
                timeout += waiting.wait() + waiting.wait() / 16;
            }
            match (&settings.waiting, self.index) {
                (Some(Waiting::Prefer(wait)), _) => {
                    let value = HeaderValue::from_str(&format!("wait={}", wait.as_secs()));
                    headers.extend(value.ok().map(|value| (http::HeaderName::from_static("prefer"), value)));
                }
                (Some(Waiting::Index { parameter, wait, .. }), Some(index)) => {
                    url = with_parameter(&url, parameter, &index.to_string()).map_err(Error::Fatal)?;
                    url = with_parameter(&url, "wait", &format!("{}s", wait.as_secs()))
                        .map_err(Error::Fatal)?;
                }
                _ => {}
            }
        }
        let answer = self.transport.get(&url, headers, timeout).await?;
        if let Some(error) = answer::refusal(answer.status(), answer.headers()) {
            return Err(error);
        }
        if answer.status() == StatusCode::NOT_MODIFIED {
            return match self.known {
                Some(_) => Ok(Listing::Unchanged),
                None => Err(garbled("nothing was asked for on a condition, and the answer is 304")),
            };
        }
        if self.validators.is_outdated(answer.headers()) {
            tracing::debug!(source = settings.name, "response ignored: it is older than an earlier one");
            return match self.known {
                Some(_) => Ok(Listing::Unchanged),
                None => Err(garbled("the answer is older than one before")),
            };
        }
        let (head, body) = answer.into_parts();
        let body = transport::body(body, settings.max_body_bytes, settings.timeout).await?;
        let mut items = Items::default();
        items.add(settings, &mut json(&body)?).map_err(|why| garbled(&why))?;
        // Only now: an answer that could not be used is asked for again.
        self.validators.learn(&head.headers);
        self.learn_index(settings, &head.headers)?;
        Ok(Listing::Items(items))
    }

    /// An index that is smaller than before, or zero, is that of another beginning: the next request waits for nothing.
    fn learn_index(&mut self, settings: &Settings, headers: &HeaderMap) -> Result<(), Error> {
        let Some(Waiting::Index { header, .. }) = &settings.waiting else { return Ok(()) };
        let index =
            headers.get(header).and_then(|index| index.to_str().ok()).and_then(|index| index.parse().ok());
        let index =
            index.ok_or_else(|| garbled(&format!("the answer has no number in its header {header}")))?;
        self.index = Some(index).filter(|index| *index > 0 && self.index.is_none_or(|known| *index >= known));
        Ok(())
    }

    /// Reads all pages until they come out the same twice in a row, or as they were before.
    async fn stable_pages(&mut self, settings: &Settings) -> Result<Listing, Error> {
        let mut before = self.known;
        for _ in 0..MAX_PASSES {
            let items = self.pages(settings).await?;
            let single = std::mem::take(&mut self.single_page);
            let print = items.print();
            if single || before == Some(print) {
                return Ok(Listing::Items(items));
            }
            before = Some(print);
        }
        Err(garbled(&format!("the list changed while its pages were read, {MAX_PASSES} times in a row")))
    }

    async fn pages(&mut self, settings: &Settings) -> Result<Items, Error> {
        let mut items = Items::default();
        let mut url = self.url.clone();
        for page in 0..MAX_PAGES {
            let headers = self.headers(settings).await?;
            let answer = self.transport.get(&url, headers, settings.timeout).await?;
            if let Some(error) = answer::refusal(answer.status(), answer.headers()) {
                return Err(error);
            }
            let (head, body) = answer.into_parts();
            if head.status != StatusCode::OK {
                return Err(garbled(&format!("the answer to page {} is {}", page + 1, head.status)));
            }
            let body = transport::body(body, settings.max_body_bytes, settings.timeout).await?;
            let mut body = json(&body)?;
            let next = self.next(settings, &url, &head.headers, &body)?;
            items.add(settings, &mut body).map_err(|why| garbled(&format!("page {}: {why}", page + 1)))?;
            let Some(next) = next else {
                self.single_page = page == 0;
                return Ok(items);
            };
            if next == url {
                return Err(garbled("a page says that it is the next one after itself"));
            }
            url = next;
        }
        Err(garbled(&format!("there are more than {MAX_PAGES} pages")))
    }

    /// Where the next page is. Never on another host, which has no business with our credentials.
    fn next(
        &self,
        settings: &Settings,
        url: &Uri,
        headers: &HeaderMap,
        body: &Value,
    ) -> Result<Option<Uri>, Error> {
        let text =
            |pointer: &str| body.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let next = match &settings.pages {
            Pages::One => return Ok(None),
            Pages::Token { pointer, parameter } => {
                let token = text(pointer).map(|token| with_parameter(&self.url, parameter, token));
                return token.transpose().map_err(Error::Fatal);
            }
            Pages::Next(pointer) => text(pointer).map(str::to_owned),
            Pages::Link => headers.get_all(LINK).iter().find_map(|link| next_link(link.to_str().ok()?)),
        };
        let Some(next) = next else { return Ok(None) };
        let resolved = resolve(url, &next).ok_or_else(|| garbled("the URL of the next page is none"))?;
        if resolved.authority() != self.url.authority() || resolved.scheme() != self.url.scheme() {
            let there = shown(&next);
            return Err(garbled(&format!("the next page is elsewhere, at {there}, and is not asked for")));
        }
        Ok(Some(resolved))
    }

    async fn headers(&self, settings: &Settings) -> Result<HeaderMap, Error> {
        let mut headers = credentials::headers(settings).await?;
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
        Ok(headers)
    }
}

/// The target of `<url>; rel="next"` among links.
fn next_link(links: &str) -> Option<String> {
    links.split('<').skip(1).find_map(|link| {
        let (url, parameters) = link.split_once('>')?;
        let is_next = parameters.split([';', ',']).any(|parameter| {
            let parameter = parameter.trim();
            parameter == "rel=next" || parameter == "rel=\"next\""
        });
        is_next.then(|| url.to_owned())
    })
}

/// A URL as seen from another.
fn resolve(base: &Uri, url: &str) -> Option<Uri> {
    let origin = format!("{}://{}", base.scheme_str()?, base.authority()?);
    let whole = if url.contains("://") {
        url.to_owned()
    } else if url.starts_with('/') {
        format!("{origin}{url}")
    } else if url.starts_with('?') {
        format!("{origin}{}{url}", base.path())
    } else {
        let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
        format!("{origin}{directory}/{url}")
    };
    whole.parse().ok()
}

fn json(body: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(body).map_err(|error| {
        garbled(&format!("the body is not JSON, at line {} column {}", error.line(), error.column()))
    })
}

fn garbled(reason: &str) -> Error {
    Error::Unavailable { answered: true, reason: reason.into() }
}

/// Says which URL an error is about.
fn in_context(name: &str, error: Error) -> Error {
    let with = |said: String| format!("{name}: {said}");
    match error {
        Error::Throttled { after, reason } => Error::Throttled { after, reason: with(reason) },
        Error::Unavailable { answered, reason } => Error::Unavailable { answered, reason: with(reason) },
        Error::Denied(said) => Error::Denied(with(said)),
        Error::Missing(said) => Error::Missing(with(said)),
        Error::Fatal(said) => Error::Fatal(with(said)),
        other => other,
    }
}

/// An interval, give or take a tenth, so that those who began together do not ask together.
pub(super) fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(0.9 + 0.2 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_links() {
        let links = r#"<https://a/?page=1>; rel="prev", <https://a/?page=3>; rel="next"; title="x""#;
        assert_eq!(next_link(links).as_deref(), Some("https://a/?page=3"));
        assert_eq!(next_link(r#"<https://a/?page=1>; rel="last""#), None);
        assert_eq!(next_link("<b>;rel=next").as_deref(), Some("b"));
    }

    #[test]
    fn urls_are_resolved() {
        let base: Uri = "http://host:1/a/b?c".parse().unwrap();
        for (url, expected) in [
            ("http://other/x", "http://other/x"),
            ("/x?y", "http://host:1/x?y"),
            ("?page=2", "http://host:1/a/b?page=2"),
            ("x", "http://host:1/a/x"),
        ] {
            assert_eq!(resolve(&base, url).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn intervals_vary_by_a_tenth() {
        let interval = Duration::from_secs(10);
        for _ in 0..1000 {
            let jittered = jittered(interval).as_secs_f64();
            assert!((9.0..=11.0).contains(&jittered), "{jittered}");
        }
    }
}
