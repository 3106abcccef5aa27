//! The watch: where it begins, what its entries become, and how it ends.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use watchkeeper_core::{Error, Source as _};

use crate::server::Server;
use crate::tap::*;

#[tokio::test]
async fn a_resumed_feed_watches_from_where_the_other_stopped() {
    let server = Server::start(|_, mut responder| async move {
        for line in [added("a", 8), modified("a", 9), deleted("a", 10), bookmark(12)] {
            responder.line(line).await;
        }
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), resume("7")).all().await;
    assert_eq!(events, ["put n/a@8 >8", "put n/a@9 >9", "delete n/a@10 >10", "nothing >12"]);
    assert_eq!(server.verbs(), ["watch@7"]);
}

#[tokio::test]
async fn every_watch_asks_for_bookmarks_and_for_an_end_within_five_to_ten_minutes() {
    let server = Server::start(|_, responder| responder.end()).await;
    for _ in 0..8 {
        assert!(Tap::open(&pods(&server), resume("7")).all().await.is_empty());
    }
    let mut timeouts = Vec::new();
    for request in server.requests() {
        assert_eq!(request.param("allowWatchBookmarks"), "true");
        assert_eq!(request.param("sendInitialEvents"), "");
        timeouts.push(request.param("timeoutSeconds").parse::<u64>().unwrap());
    }
    assert!(timeouts.iter().all(|timeout| (300..=600).contains(timeout)), "{timeouts:?}");
    timeouts.dedup();
    assert!(timeouts.len() > 1, "all the same: {timeouts:?}");
}

#[tokio::test]
async fn a_watch_never_begins_at_no_version_or_at_any() {
    let server = Server::start(|_, responder| responder.end()).await;
    for version in ["", "0"] {
        let events = Tap::open(&pods(&server), resume(version)).all().await;
        assert!(events[0].starts_with("error the version is not available"), "{events:?}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn entries_are_told_wherever_the_chunks_end() {
    let server = Server::start(|_, mut responder| async move {
        let bytes = [added("a", 8), String::new(), modified("b", 9), bookmark(10)].join("\r\n") + "\n";
        for chunk in bytes.as_bytes().chunks(7) {
            responder.chunk(chunk).await;
        }
        responder.chunk([added("c", 11), added("d", 12)].join("\n")).await;
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), resume("7")).all().await;
    let expected = ["put n/a@8 >8", "put n/b@9 >9", "nothing >10", "put n/c@11 >11", "put n/d@12 >12"];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn half_an_entry_at_the_end_is_a_broken_stream_and_no_bad_object() {
    let server = Server::start(|_, mut responder| async move {
        responder.line(added("a", 8)).await;
        responder.chunk(&added("b", 9)[..150]).await;
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), resume("7")).all().await;
    assert_eq!(events[0], "put n/a@8 >8");
    assert_eq!(events[1..], ["error unavailable: watch /api/v1/pods: ended within an entry"]);
}

#[tokio::test]
async fn a_broken_connection_is_unavailable_after_what_was_told() {
    let server = Server::start(|_, mut responder| async move {
        responder.line(added("a", 8)).await;
        responder.cut_within(&added("b", 9).as_bytes()[..20]).await;
    })
    .await;
    let mut feed = pods(&server).open(resume("7"));
    assert!(feed.next().await.unwrap().is_ok());
    match feed.next().await {
        Some(Err(Error::Unavailable { answered: true, .. })) => {}
        other => panic!("{other:?}"),
    }
    assert!(feed.next().await.is_none());
}

async fn watch_error(code: u16, retry_after: &'static str, body: String, within: bool) -> Error {
    let server = Server::start(move |_, mut responder| {
        let body = body.clone();
        async move {
            if within {
                responder.line(added("a", 8)).await;
                responder.line(entry("ERROR", &body)).await;
                responder.line(added("b", 9)).await;
                responder.end().await;
            } else {
                responder.answer(code, &[("retry-after", retry_after)], body).await;
            }
        }
    })
    .await;
    let mut events: Vec<_> = pods(&server).open(resume("7")).collect().await;
    assert_eq!(events.len(), 1 + usize::from(within));
    events.pop().unwrap().unwrap_err()
}

#[tokio::test]
async fn a_version_that_is_gone_is_expired_as_a_code_and_as_an_entry() {
    for within in [false, true] {
        let error =
            watch_error(410, "", status(410, "Expired", "too old resource version: 7 (9)"), within).await;
        let code = "watch /api/v1/pods: 410 Expired: too old resource version: 7 (9)";
        assert_eq!(error, Error::Expired(code.into()));
    }
}

#[tokio::test]
async fn throttling_says_how_long_to_wait_as_a_code_and_as_an_entry() {
    let opening = watch_error(429, "7", status(429, "TooManyRequests", "m"), false).await;
    assert!(matches!(opening, Error::Throttled { after: Some(after), .. } if after.as_secs() == 7));
    let body = r#"{"code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":9}}"#;
    let within = watch_error(429, "", body.into(), true).await;
    assert!(matches!(within, Error::Throttled { after: Some(after), .. } if after.as_secs() == 9));
}

#[tokio::test]
async fn other_refusals_are_classified_the_same_as_a_code_and_as_an_entry() {
    for within in [false, true] {
        for (code, reason, class) in [
            (500, "InternalError", "unavailable"),
            (403, "Forbidden", "denied"),
            (404, "NotFound", "missing"),
            (400, "BadRequest", "fatal"),
            (504, "Timeout", "unavailable"),
        ] {
            assert_eq!(watch_error(code, "", status(code, reason, "m"), within).await.class(), class);
        }
    }
}

#[tokio::test]
async fn a_silence_longer_than_the_server_was_given_is_a_dead_connection() {
    let server = Server::start(|_, mut responder| async move {
        responder.line(added("a", 8)).await;
        responder.hang().await;
    })
    .await;
    let mut tap = Tap::open(&pods(&server), resume("7"));
    assert_eq!(tap.next().await, "put n/a@8 >8");
    let_pass(Duration::from_secs(631)).await;
    let error = tap.next().await;
    assert!(error.contains("taken for dead"), "{error}");
}

#[tokio::test]
async fn a_silence_of_minutes_is_deadly_once_bookmarks_have_come_every_minute() {
    let (tell, mut told) = mpsc::channel::<()>(1);
    let tell = std::sync::Arc::new(tell);
    let (go, wait) = tokio::sync::watch::channel(false);
    let server = Server::start(move |_, mut responder| {
        let (tell, mut wait) = (tell.clone(), wait.clone());
        async move {
            responder.line(added("a", 8)).await;
            tell.send(()).await.unwrap();
            wait.wait_for(|go| *go).await.unwrap();
            responder.line(bookmark(9)).await;
            responder.hang().await;
        }
    })
    .await;
    let mut tap = Tap::open(&pods(&server), resume("7"));
    told.recv().await.unwrap();
    assert_eq!(tap.next().await, "put n/a@8 >8");
    let_pass(Duration::from_secs(60)).await;
    go.send(true).unwrap();
    assert_eq!(tap.next().await, "nothing >9");
    let_pass(Duration::from_secs(152)).await;
    let error = tap.next().await;
    assert!(error.contains("silent for 15") && error.contains("taken for dead"), "{error}");
}

#[tokio::test]
async fn dropping_the_feed_closes_the_connection() {
    let (tell, mut told) = mpsc::channel::<()>(1);
    let server = Server::start(move |_, mut responder| {
        let tell = tell.clone();
        async move {
            responder.line(added("a", 8)).await;
            responder.closed().await;
            tell.send(()).await.unwrap();
        }
    })
    .await;
    let mut tap = Tap::open(&pods(&server), resume("7"));
    assert_eq!(tap.next().await, "put n/a@8 >8");
    assert!(told.try_recv().is_err());
    drop(tap);
    tokio::time::timeout(Duration::from_secs(20), told.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn nothing_is_asked_before_the_feed_is_polled() {
    let server = Server::start(|_, responder| responder.end()).await;
    let feed = pods(&server).open(any());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(server.requests().is_empty());
    drop(feed);
}
