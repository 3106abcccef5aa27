//! Documents about all that is served: made when somebody first asks for one, once for each registry, and kept.
//!
//! Those who ask at the same time wait for the same one. It is made beside the threads that answer others, one document at a
//! time. Long ones are kept compressed, as nearly all clients want them, which is a tenth of the memory.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use http::header::IF_NONE_MATCH;
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::budget::beside;
use crate::front::Body;
use crate::gzip;
use crate::request::media::Format;
use crate::status_error::StatusError;

/// Which document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    /// `/openapi/v2`, as JSON or as protobuf.
    OpenApi2 { protobuf: bool },
    /// `/openapi/v3`.
    OpenApi3Index,
    /// `/openapi/v3/apis/GROUP/VERSION`.
    OpenApi3 { group: String, version: String },
    /// `/apis`.
    Groups { format: Format },
    /// `/api` or `/apis` with everything below.
    Discovery { core: bool, format: Format },
}

/// A document that does not change, and how clients recognise it.
pub(crate) struct Document {
    content: Content,
    tag: HeaderValue,
}

enum Content {
    Plain(Bytes),
    Gzip(Bytes),
}

impl Document {
    fn new(bytes: Vec<u8>) -> Self {
        let tag = tag(&bytes);
        let content = if bytes.len() > gzip::THRESHOLD {
            Content::Gzip(gzip::whole(&bytes))
        } else {
            Content::Plain(bytes.into())
        };
        Self { content, tag }
    }

    /// What changes when the document does, in quotes.
    pub(crate) fn tag(&self) -> HeaderValue {
        self.tag.clone()
    }

    /// Whether a client that sends these headers has the document already.
    pub(crate) fn is_known(&self, request: &HeaderMap) -> bool {
        let known = request
            .get_all(IF_NONE_MATCH)
            .iter()
            .flat_map(|tags| tags.as_bytes().split(|byte| *byte == b','));
        known
            .map(<[u8]>::trim_ascii)
            .any(|known| known == b"*" || known.strip_prefix(b"W/").unwrap_or(known) == self.tag.as_bytes())
    }

    /// The bytes, and whether they are compressed, which they are only if they are long and it is wanted.
    pub(crate) fn body(&self, gzip: bool) -> (Body, bool) {
        match &self.content {
            Content::Plain(bytes) => (Body::whole(bytes.clone()), false),
            Content::Gzip(bytes) if gzip => (Body::whole(bytes.clone()), true),
            Content::Gzip(bytes) => (gzip::expand(bytes.clone()), false),
        }
    }
}

/// The tag of these bytes.
pub(crate) fn tag(bytes: &[u8]) -> HeaderValue {
    let digest = ring::digest::digest(&ring::digest::SHA512, bytes);
    let digits: String = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    HeaderValue::try_from(format!("\"{digits}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// A document, or one that is being made; `None` if that failed.
type Making = Shared<BoxFuture<'static, Option<Arc<Document>>>>;

/// The documents of one registry.
#[derive(Default)]
pub(crate) struct Documents {
    kept: Mutex<HashMap<Name, Making>>,
}

impl Documents {
    /// A document, made if it is not there yet when it is its turn. It is made to its end even if nobody waits for it any more.
    pub(crate) async fn get(
        &self,
        name: Name,
        turns: &Arc<Semaphore>,
        make: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<Arc<Document>, StatusError> {
        let making = self.kept.lock().entry(name.clone()).or_insert_with(|| begin(turns, make)).clone();
        match making.await {
            Some(document) => Ok(document),
            None => {
                self.kept.lock().remove(&name);
                Err(StatusError::internal("the document could not be made"))
            }
        }
    }
}

fn begin(turns: &Arc<Semaphore>, make: impl FnOnce() -> Vec<u8> + Send + 'static) -> Making {
    let turns = Arc::clone(turns);
    let task = tokio::spawn(async move {
        let _turn = turns.acquire().await;
        beside(|| Arc::new(Document::new(make())))
    });
    task.map(Result::ok).boxed().shared()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use http_body_util::BodyExt;

    use super::*;

    const NAME: Name = Name::OpenApi2 { protobuf: false };

    #[tokio::test]
    async fn those_who_ask_at_once_wait_for_one_document() {
        let (documents, turns, made) =
            (Documents::default(), Arc::new(Semaphore::new(1)), Arc::new(AtomicUsize::new(0)));
        let ask = || {
            let made = Arc::clone(&made);
            documents.get(NAME, &turns, move || {
                made.fetch_add(1, Ordering::Relaxed);
                b"{}".to_vec()
            })
        };
        let got = join_all((0..50).map(|_| ask())).await;
        assert!(got.iter().all(|document| document.as_ref().unwrap().tag() == tag(b"{}")));
        ask().await.unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn who_goes_away_leaves_the_document_to_others_and_one_that_panics_is_tried_again() {
        let (documents, turns) = (Documents::default(), Arc::new(Semaphore::new(1)));
        let mut gone = Box::pin(documents.get(NAME, &turns, || b"first".to_vec()));
        assert!(futures_util::poll!(&mut gone).is_pending());
        drop(gone);
        let document = documents.get(NAME, &turns, || b"second".to_vec()).await.unwrap();
        assert_eq!(document.tag(), tag(b"first"));

        let other = Name::OpenApi3Index;
        assert!(documents.get(other.clone(), &turns, || panic!("on purpose")).await.is_err());
        assert!(documents.get(other, &turns, Vec::new).await.is_ok());
    }

    #[tokio::test]
    async fn a_long_document_is_kept_small_and_comes_back_whole() {
        let bytes: Vec<u8> = (0..400_000u32).flat_map(|number| (number / 100).to_le_bytes()).collect();
        let document = Document::new(bytes.clone());
        let Content::Gzip(kept) = &document.content else { panic!("not compressed") };
        assert!(kept.len() < bytes.len() / 10);
        let (body, compressed) = document.body(true);
        assert!(compressed);
        assert_eq!(body.collect().await.unwrap().to_bytes(), kept);
        let (body, compressed) = document.body(false);
        assert!(!compressed);
        assert_eq!(body.collect().await.unwrap().to_bytes(), bytes);
    }

    #[test]
    fn a_document_is_known_by_its_tag_among_others() {
        let document = Document::new(b"{}".to_vec());
        let tag = document.tag().to_str().unwrap().to_owned();
        let known = |sent: &str| {
            document.is_known(&HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_str(sent).unwrap())]))
        };
        assert!(known(&tag) && known(&format!("\"a\", W/{tag}")) && known("*"));
        assert!(!known("\"a\"") && !known(tag.trim_matches('"')) && !document.is_known(&HeaderMap::new()));
    }
}
