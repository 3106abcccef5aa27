//! Streamed lists: the objects as entries of a watch, then the same stream as the log.

use std::time::Duration;

use crate::server::{Request, Responder, Server};
use crate::tap::*;

/// What a server does with a list in pages after it has failed to stream it.
async fn paged(request: Request, responder: Responder) {
    if request.is_watch() {
        responder.end().await;
    } else {
        responder.json(200, page(9, &["c"], "")).await;
    }
}

/// What the feed delivers from the list in pages that [`paged`] answers.
const FROM_PAGES: [&str; 3] = ["begin", "item n/c@1", "complete >9"];

#[tokio::test]
async fn the_objects_come_first_then_the_bookmark_then_the_log_in_one_stream() {
    let server = Server::start(|_, mut responder| async move {
        responder.line(added("a", 1)).await;
        responder.line(added("b", 2)).await;
        responder.line(end_bookmark(7)).await;
        responder.line(modified("a", 8)).await;
        responder.line(deleted("b", 9)).await;
        responder.line(bookmark(10)).await;
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), any()).all().await;
    let expected = [
        "begin",
        "item n/a@1",
        "item n/b@2",
        "complete >7",
        "put n/a@8 >8",
        "delete n/b@9 >9",
        "nothing >10",
    ];
    assert_eq!(events, expected);
    assert_eq!(server.verbs(), ["stream@0"]);
    let request = &server.requests()[0];
    assert_eq!(request.param("resourceVersionMatch"), "NotOlderThan");
    assert_eq!(request.param("allowWatchBookmarks"), "true");
    assert_eq!(request.headers["accept-encoding"], "identity");
}

#[tokio::test]
async fn freshness_becomes_the_version_asked_for() {
    let server = Server::start(|_, mut responder| async move {
        responder.line(end_bookmark(9)).await;
        responder.end().await;
    })
    .await;
    for start in [any(), not_older(5), newest()] {
        assert_eq!(Tap::open(&pods(&server), start).all().await, ["begin", "complete >9"]);
    }
    assert_eq!(server.verbs(), ["stream@0", "stream@5", "stream"]);
}

#[tokio::test]
async fn what_changes_during_the_initial_entries_ends_up_right() {
    let server = Server::start(|_, mut responder| async move {
        for line in
            [added("a", 1), added("a", 1), added("b", 2), modified("a", 3), deleted("b", 4), end_bookmark(7)]
        {
            responder.line(line).await;
        }
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), any()).all().await;
    let expected =
        ["begin", "item n/a@1", "item n/a@1", "item n/b@2", "item n/a@3", "delete n/b@4", "complete >7"];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn a_server_that_refuses_the_question_is_asked_for_pages_and_not_asked_again_soon() {
    for code in [400, 422] {
        let server = Server::start(move |request, responder| async move {
            if request.is_streamed_list() {
                let message =
                    "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
                return responder.json(code, status(code, "Invalid", message)).await;
            }
            paged(request, responder).await;
        })
        .await;
        let source = pods(&server);
        for _ in 0..2 {
            assert_eq!(Tap::open(&source, any()).all().await, FROM_PAGES);
        }
        assert_eq!(server.verbs(), ["stream@0", "list@0", "watch@9", "list@0", "watch@9"]);
        let_pass(Duration::from_secs(601)).await;
        Tap::open(&source, any()).all().await;
        assert_eq!(server.verbs()[5], "stream@0");
    }
}

#[tokio::test]
async fn another_failure_means_pages_for_this_time_only() {
    let server = Server::start(|request, mut responder| async move {
        match (request.is_streamed_list(), request.number) {
            (true, 0) => responder.json(500, status(500, "InternalError", "m")).await,
            (true, _) => {
                responder.line(added("a", 1)).await;
                responder.line(entry("ERROR", &status(500, "InternalError", "m"))).await;
                responder.end().await;
            }
            _ => paged(request, responder).await,
        }
    })
    .await;
    let source = pods(&server);
    assert_eq!(Tap::open(&source, any()).all().await, FROM_PAGES);
    let again = Tap::open(&source, any()).all().await;
    assert_eq!(again[..2], ["begin", "item n/a@1"]);
    assert_eq!(again[2..], FROM_PAGES);
    assert_eq!(server.verbs(), ["stream@0", "list@0", "watch@9", "stream@0", "list@0", "watch@9"]);
}

#[tokio::test]
async fn throttling_expiry_and_absence_are_no_reason_to_ask_for_pages() {
    for (code, reason, class) in
        [(429, "TooManyRequests", "throttled"), (410, "Expired", "the version"), (404, "NotFound", "missing")]
    {
        for within in [false, true] {
            let server = Server::start(move |_, mut responder| async move {
                if within {
                    responder.line(entry("ERROR", &status(code, reason, "m"))).await;
                    responder.end().await;
                } else {
                    responder.json(code, status(code, reason, "m")).await;
                }
            })
            .await;
            let events = Tap::open(&pods(&server), any()).all().await;
            assert_eq!(events.len(), 2);
            assert!(events[1].starts_with(&format!("error {class}")), "{}", events[1]);
            assert_eq!(server.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn who_may_list_but_not_watch_gets_a_snapshot_and_then_the_refusal() {
    let server = Server::start(|request, responder| async move {
        if request.is_watch() {
            return responder.json(403, status(403, "Forbidden", "cannot watch")).await;
        }
        paged(request, responder).await;
    })
    .await;
    let events = Tap::open(&pods(&server), any()).all().await;
    assert_eq!(events[..3], FROM_PAGES);
    assert_eq!(events[3], "error denied: watch /api/v1/pods: 403 Forbidden: cannot watch");
}

#[tokio::test]
async fn a_bookmark_without_the_annotation_shows_that_the_server_ignores_the_question() {
    let server = Server::start(|request, mut responder| async move {
        if !request.is_streamed_list() {
            return paged(request, responder).await;
        }
        responder.line(added("a", 1)).await;
        responder.line(bookmark(7)).await;
        responder.hang().await;
    })
    .await;
    let events = Tap::open(&pods(&server), any()).all().await;
    assert_eq!(events[..2], ["begin", "item n/a@1"]);
    assert_eq!(events[2..], FROM_PAGES);
}

#[tokio::test]
async fn ten_seconds_without_another_object_or_the_bookmark_are_enough() {
    let server = Server::start(|request, mut responder| async move {
        if !request.is_streamed_list() {
            return paged(request, responder).await;
        }
        responder.line(added("a", 1)).await;
        responder.line(modified("a", 2)).await;
        responder.hang().await;
    })
    .await;
    let mut tap = Tap::open(&pods(&server), any());
    assert_eq!(tap.take(3).await, ["begin", "item n/a@1", "item n/a@2"]);
    let_pass(Duration::from_secs(11)).await;
    assert_eq!(tap.all().await, FROM_PAGES);
}

#[tokio::test]
async fn a_stream_that_ends_in_good_order_before_the_bookmark_is_followed_by_pages() {
    let server = Server::start(|request, mut responder| async move {
        if !request.is_streamed_list() {
            return paged(request, responder).await;
        }
        responder.line(added("a", 1)).await;
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), any()).all().await;
    assert_eq!(events[..2], ["begin", "item n/a@1"]);
    assert_eq!(events[2..], FROM_PAGES);
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_bookmark_never_completes() {
    for how in 0..3 {
        let server = Server::start(move |_, mut responder| async move {
            responder.line(added("a", 1)).await;
            match how {
                0 => responder.cut().await,
                1 => responder.cut_within(added("b", 2).as_bytes()).await,
                _ => {
                    // The reset would overtake what the client has not read yet.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    responder.reset().await;
                }
            }
        })
        .await;
        let events = Tap::open(&pods(&server), any()).all().await;
        assert_eq!(events[..2], ["begin", "item n/a@1"]);
        assert!(events[2].starts_with("error unavailable: watch /api/v1/pods: broken off"), "{}", events[2]);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn something_that_cannot_be_identified_spoils_the_stream_but_not_the_snapshot() {
    let server = Server::start(|request, mut responder| async move {
        if !request.is_streamed_list() {
            return paged(request, responder).await;
        }
        responder.line(added("a", 1)).await;
        responder.line("garbage").await;
        responder.line(end_bookmark(7)).await;
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), any()).all().await;
    assert_eq!(events[..2], ["begin", "item n/a@1"]);
    assert!(events[2].starts_with("rejected an unknown object: malformed"), "{}", events[2]);
    assert_eq!(events[3..], FROM_PAGES);
}

#[tokio::test]
async fn a_bad_object_with_a_name_does_not_spoil_the_stream() {
    let server = Server::start(|_, mut responder| async move {
        let bad = entry("ADDED", r#"{"metadata":{"name":"bad","resourceVersion":"5"},"x":tru}"#);
        for line in [added("a", 1), bad, end_bookmark(7)] {
            responder.line(line).await;
        }
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), any()).all().await;
    assert_eq!(events[1], "item n/a@1");
    assert!(events[2].starts_with("rejected bad: malformed") && !events[2].contains('>'), "{}", events[2]);
    assert_eq!(events[3], "complete >7");
}

#[tokio::test]
async fn a_stream_older_than_it_should_be_never_completes() {
    let server = Server::start(|_, mut responder| async move {
        responder.line(end_bookmark(7)).await;
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), not_older(8)).all().await;
    assert!(events[1].starts_with("error the version is not available"), "{}", events[1]);
}
