//! Lists in pages: what is asked for, what is delivered, and what never completes.

use crate::server::{Request, Responder, Server, connection_to, refusing_address};
use crate::tap::*;
use std::time::Duration;
use watchkeeper_core::{Error, Event, Freshness, Source as _, Start};
use watchkeeper_sources::kubernetes::Kubernetes;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;

/// Answers lists with one page at version 7 and watches with nothing.
async fn plain(request: Request, responder: Responder) {
    if request.is_watch() {
        responder.end().await;
    } else {
        responder.json(200, page(7, &["a", "b"], "")).await;
    }
}

#[tokio::test]
async fn a_snapshot_is_listed_and_then_watched_in_one_feed() {
    let server = Server::start(|request, mut responder| async move {
        if !request.is_watch() {
            return responder.json(200, page(7, &["a", "b"], "")).await;
        }
        responder.line(modified("a", 8)).await;
        responder.end().await;
    })
    .await;
    let events = Tap::open(&paged_pods(&server), any()).all().await;
    assert_eq!(events, ["begin", "item n/a@1", "item n/b@1", "complete >7", "put n/a@8 >8"]);
    assert_eq!(server.verbs(), ["list@0", "watch@7"]);
    assert_eq!(server.requests()[0].path, "/api/v1/pods");
}

#[tokio::test]
async fn the_first_list_takes_any_version_a_relist_none_older_and_the_newest_names_none() {
    let server = Server::start(plain).await;
    let source = paged_pods(&server);
    for start in [any(), not_older(5), newest()] {
        Tap::open(&source, start).all().await;
    }
    let lists: Vec<Request> = server.requests().into_iter().filter(|request| !request.is_watch()).collect();
    let asked: Vec<(&str, &str, &str)> = lists
        .iter()
        .map(|list| (list.param("resourceVersion"), list.param("resourceVersionMatch"), list.param("limit")))
        .collect();
    assert_eq!(asked, [("0", "", "500"), ("5", "NotOlderThan", ""), ("", "", "500")]);
}

#[tokio::test]
async fn a_server_that_pages_lists_at_any_version_is_asked_for_pages_at_a_given_one_too() {
    let server = Server::start(|request, responder| async move {
        match (request.is_watch(), request.param("continue")) {
            (true, _) => responder.end().await,
            (_, "") => responder.json(200, page(7, &["a"], "next")).await,
            _ => responder.json(200, page(7, &["b"], "")).await,
        }
    })
    .await;
    let source = paged_pods(&server);
    Tap::open(&source, any()).all().await;
    Tap::open(&source, not_older(5)).all().await;
    let first_pages = server.requests().into_iter().filter(|request| request.param("resourceVersion") == "5");
    assert_eq!(first_pages.map(|request| request.param("limit").to_owned()).collect::<Vec<_>>(), ["500"]);
}

#[tokio::test]
async fn a_page_size_that_was_set_is_used_always() {
    let server = Server::start(plain).await;
    for (size, limit) in [(50, "50"), (0, "")] {
        Tap::open(&paged_pods(&server).page_size(size), not_older(5)).all().await;
        let lists = server.requests();
        let list = lists.iter().rfind(|request| !request.is_watch()).unwrap();
        assert_eq!(list.param("limit"), limit);
    }
}

#[tokio::test]
async fn pages_follow_each_other_by_their_tokens_and_stand_for_the_first_ones_version() {
    let server = Server::start(|request, responder| async move {
        match (request.is_watch(), request.param("continue")) {
            (true, _) => responder.end().await,
            (_, "") => responder.json(200, page(7, &["a"], "t+1/=")).await,
            (_, "t+1/=") => responder.json(200, page(9, &["b"], "t2")).await,
            (_, token) => {
                assert_eq!(token, "t2");
                responder.json(200, page(9, &["c"], "")).await;
            }
        }
    })
    .await;
    let events = Tap::open(&paged_pods(&server), any()).all().await;
    assert_eq!(events, ["begin", "item n/a@1", "item n/b@1", "item n/c@1", "complete >7"]);
    assert_eq!(server.verbs(), ["list@0", "list", "list", "watch@7"]);
    assert!(server.requests()[..3].iter().all(|request| request.param("limit") == "500"));
}

#[tokio::test]
async fn a_token_that_expires_on_page_three_begins_one_whole_list() {
    let server = Server::start(|request, responder| async move {
        match (request.is_watch(), request.param("continue"), request.param("limit")) {
            (true, ..) => responder.end().await,
            (_, "", "") => responder.json(200, page(20, &["a", "b", "d"], "")).await,
            (_, "", _) => responder.json(200, page(7, &["a"], "t1")).await,
            (_, "t1", _) => responder.json(200, page(7, &["b"], "t2")).await,
            _ => responder.json(410, status(410, "Expired", "the continue token is too old")).await,
        }
    })
    .await;
    let events = Tap::open(&paged_pods(&server), any()).all().await;
    let expected = [
        "begin",
        "item n/a@1",
        "item n/b@1",
        "begin",
        "item n/a@1",
        "item n/b@1",
        "item n/d@1",
        "complete >20",
    ];
    assert_eq!(events, expected);
    assert_eq!(server.verbs(), ["list@0", "list", "list", "list@0", "watch@20"]);
}

#[tokio::test]
async fn a_page_that_is_followed_by_itself_is_no_list() {
    let server =
        Server::start(|_, responder| async move { responder.json(200, page(7, &["a"], "again")).await })
            .await;
    let events = Tap::open(&paged_pods(&server), any()).all().await;
    assert_eq!(events[..3], ["begin", "item n/a@1", "item n/a@1"]);
    assert!(events[3].contains("never ends"), "{}", events[3]);
}

#[tokio::test]
async fn a_list_at_a_version_that_is_gone_or_not_there_yet_is_expired() {
    let too_large = r#"{"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version: 9",
        "details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1}}"#;
    for (code, body) in [(410, status(410, "Expired", "too old")), (504, too_large.into())] {
        let server = Server::start(move |_, responder| {
            let body = body.clone();
            async move { responder.json(code, body).await }
        })
        .await;
        let events = Tap::open(&paged_pods(&server), not_older(9)).all().await;
        assert_eq!(events[0], "begin");
        assert!(
            events[1].starts_with("error the version is not available: list /api/v1/pods: "),
            "{}",
            events[1]
        );
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_list_older_than_it_should_be_never_completes() {
    let server = Server::start(plain).await;
    let events = Tap::open(&paged_pods(&server), not_older(8)).all().await;
    assert!(events[3].starts_with("error the version is not available"), "{events:?}");
}

async fn list_error(code: u16, headers: &'static [(&'static str, &'static str)], body: String) -> Error {
    let server = Server::start(move |_, responder| {
        let body = body.clone();
        async move { responder.answer(code, headers, body).await }
    })
    .await;
    let mut feed = paged_pods(&server).open(any());
    assert!(matches!(feed.next().await, Some(Ok(Event::Begin))));
    feed.next().await.unwrap().unwrap_err()
}

#[tokio::test]
async fn a_refused_list_says_what_can_be_done_about_it() {
    let throttled =
        list_error(429, &[("retry-after", "7")], status(429, "TooManyRequests", "slow down")).await;
    let reason = "list /api/v1/pods: 429 TooManyRequests: slow down".to_owned();
    assert_eq!(throttled, Error::Throttled { after: Some(Duration::from_secs(7)), reason });
    let busy = list_error(503, &[("retry-after", "3")], String::new()).await;
    assert!(matches!(busy, Error::Throttled { after: Some(after), .. } if after.as_secs() == 3));

    let denied = list_error(403, &[], status(403, "Forbidden", "pods is forbidden")).await;
    assert_eq!(denied, Error::Denied("list /api/v1/pods: 403 Forbidden: pods is forbidden".into()));
    assert_eq!(list_error(401, &[], String::new()).await.class(), "denied");
    assert_eq!(
        list_error(404, &[], "404 page not found".into()).await,
        Error::Missing("list /api/v1/pods: 404".into())
    );
    assert_eq!(list_error(400, &[], status(400, "BadRequest", "selector")).await.class(), "fatal");
    let broken = list_error(500, &[], "<html>s3cr3t</html>".into()).await;
    assert_eq!(broken, Error::Unavailable { answered: true, reason: "list /api/v1/pods: 500".into() });
}

#[tokio::test]
async fn a_refusal_without_end_is_read_no_further_than_needed() {
    let server = Server::start(|_, mut responder| async move {
        responder.begin(500, &[]).await;
        for _ in 0..1_000 {
            responder.chunk(vec![b'x'; 60_000]).await;
        }
        responder.hang().await;
    })
    .await;
    let start = tokio::time::Instant::now();
    let events = Tap::open(&paged_pods(&server), any()).all().await;
    assert_eq!(events[1], "error unavailable: list /api/v1/pods: 500");
    assert!(start.elapsed() < Duration::from_secs(8), "it was read until patience ran out");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_did_not_answer() {
    let source = Kubernetes::of::<Pod>(connection_to(refusing_address().await));
    for start in [any(), resume("7")] {
        let events: Vec<_> = source.open(start).collect().await;
        match events.last() {
            Some(Err(Error::Unavailable { answered: false, reason })) => {
                assert!(reason.to_lowercase().contains("refused"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_list_that_is_cut_off_never_completes() {
    let whole = page(7, &["a", "b"], "");
    for (keep, clean) in [(whole.len() - 1, true), (whole.len() - 30, false), (40, true), (0, true)] {
        let part = whole.as_bytes()[..keep].to_vec();
        let server = Server::start(move |_, mut responder| {
            let part = part.clone();
            async move {
                if clean {
                    responder.chunk(part).await;
                    responder.end().await;
                } else {
                    responder.cut_within(&part).await;
                }
            }
        })
        .await;
        let events = Tap::open(&paged_pods(&server), any()).all().await;
        assert!(!events.iter().any(|event| event.starts_with("complete")), "{events:?}");
        assert!(events.last().unwrap().starts_with("error unavailable: list /api/v1/pods: "), "{events:?}");
    }
}

#[tokio::test]
async fn a_list_that_arrives_byte_by_byte_is_delivered_as_it_comes() {
    let server = Server::start(|request, mut responder| async move {
        if request.is_watch() {
            return responder.end().await;
        }
        let whole = page(7, &["a", "b"], "");
        let (most, last) = whole.as_bytes().split_at(whole.len() - 5);
        for byte in most {
            responder.chunk([*byte]).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        responder.chunk(last).await;
        responder.end().await;
    })
    .await;
    let mut tap = Tap::open(&paged_pods(&server), any());
    assert_eq!(tap.take(2).await, ["begin", "item n/a@1"]);
    assert_eq!(tap.all().await, ["item n/b@1", "complete >7"]);
}

#[tokio::test]
async fn a_list_without_progress_is_given_up() {
    let server = Server::start(|_, mut responder| async move {
        responder.chunk(&page(7, &["a"], "")[..150]).await;
        responder.hang().await;
    })
    .await;
    let mut tap = Tap::open(&paged_pods(&server), any());
    assert_eq!(tap.take(1).await, ["begin"]);
    let_pass(Duration::from_secs(61)).await;
    let error = tap.next().await;
    assert!(error.contains("the list makes no progress for 60 s"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_at_all_is_unavailable() {
    let server = Server::start(|_, responder| responder.hang()).await;
    let mut tap = Tap::open(&paged_pods(&server), any());
    assert_eq!(tap.next().await, "begin");
    let_pass(Duration::from_secs(61)).await;
    assert_eq!(tap.next().await, "error unavailable: list /api/v1/pods: no answer within 60 s");
}

#[tokio::test]
async fn selectors_namespace_and_the_wish_for_metadata_reach_the_server() {
    let server = Server::start(plain).await;
    let source = paged_pods(&server)
        .namespace("shop")
        .labels("app in (a,b)")
        .fields("metadata.name=a")
        .metadata_only();
    assert_eq!(source.name(), "pods in shop");
    Tap::open(&source, any()).all().await;
    for request in server.requests() {
        assert_eq!(request.path, "/api/v1/namespaces/shop/pods");
        assert_eq!(request.param("labelSelector"), "app in (a,b)");
        assert_eq!(request.param("fieldSelector"), "metadata.name=a");
        let list = if request.is_watch() { "" } else { "List" };
        let accept =
            format!("application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1, application/json");
        assert_eq!(request.headers["accept"], accept);
    }
}

#[tokio::test]
async fn items_are_given_their_kind_and_lose_what_was_not_wanted() {
    let server = Server::start(|request, responder| async move {
        if request.is_watch() {
            return responder.end().await;
        }
        let item = r#"{"metadata":{"name":"a","managedFields":[1]},"spec":{"x":1,"y":2}}"#;
        responder.json(200, format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{item}]}}"#)).await;
    })
    .await;
    let pods = || paged_pods(&server);
    for (source, body) in [
        (pods(), r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"x":1,"y":2}}"#),
        (
            pods().drop("/spec/x"),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"y":2}}"#,
        ),
        (pods().metadata_only(), r#"{"metadata":{"name":"a"}}"#),
        (
            pods().keep_managed_fields().drop("/spec"),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","managedFields":[1]}}"#,
        ),
    ] {
        let mut feed = source.open(Start::Snapshot(Freshness::Any));
        feed.next().await;
        match feed.next().await {
            Some(Ok(Event::Item(document))) => assert_eq!(String::from_utf8_lossy(&document.body), body),
            other => panic!("{other:?}"),
        }
    }
}
