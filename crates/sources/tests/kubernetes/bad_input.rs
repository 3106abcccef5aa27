//! What no decent server sends. One bad thing costs one object at most, is told, and is never repeated in full.

use crate::server::Server;
use crate::tap::*;

/// What a watch makes of these lines between two good ones.
async fn watch_lines(lines: Vec<Vec<u8>>) -> Vec<String> {
    let server = Server::start(move |_, mut responder| {
        let lines = lines.clone();
        async move {
            responder.line(added("before", 8)).await;
            for line in lines {
                responder.line(line).await;
            }
            responder.line(added("after", 99)).await;
            responder.end().await;
        }
    })
    .await;
    let events = Tap::open(&pods(&server).max_object_bytes(100_000), resume("7")).all().await;
    assert_eq!(events.first().unwrap(), "put n/before@8 >8");
    assert_eq!(events.last().unwrap(), "put n/after@99 >99");
    assert!(events.iter().all(|event| !event.contains("s3cr3t")), "{events:?}");
    events[1..events.len() - 1].to_vec()
}

#[tokio::test]
async fn bad_lines_are_rejected_and_the_watch_goes_on() {
    for (line, told) in [
        ("garbage s3cr3t".into(), "rejected an unknown object: malformed (expected an object at byte 0)"),
        ("{}".into(), "rejected an unknown object: unknown_entry (an entry without a type)"),
        (
            entry(
                "ADDED",
                r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"name":"t"},"rows":["s3cr3t"]}"#,
            ),
            "rejected an unknown object: wrong_kind (an object of another kind)",
        ),
        (
            entry(
                "MODIFIED",
                r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":"s3cr3t"}"#,
            ),
            "rejected an unknown object: wrong_kind (an object of another kind)",
        ),
        (entry("RENAMED", &pod("a", 9)), "rejected n/a: unknown_entry (an entry of type \"RENAMED\") >9"),
        (
            entry("MODIFIED", r#"{"metadata":{"name":"a","resourceVersion":"9"},"s3cr3t":nope}"#),
            "rejected a: malformed (expected true, false or null at byte 84) >9",
        ),
        (
            entry("ADDED", r#"{"metadata":{"resourceVersion":"9"},"spec":"s3cr3t"}"#),
            "rejected an unknown object: nameless (no metadata.name) >9",
        ),
        (r#"{"type":"ADDED"}"#.into(), "rejected an unknown object: nameless (an entry without an object)"),
    ] {
        assert_eq!(watch_lines(vec![line.clone().into_bytes()]).await, [told], "{line}");
    }
}

#[tokio::test]
async fn invalid_utf8_is_rejected_by_name() {
    let mut line = modified("a", 9).into_bytes();
    let at = line.windows(6).position(|window| window == b"s3cr3t").unwrap();
    line[at] = 0xff;
    assert_eq!(watch_lines(vec![line]).await, ["rejected n/a: malformed (invalid UTF-8) >9"]);
}

#[tokio::test]
async fn nesting_without_end_is_rejected_by_name() {
    let object = format!(r#"{{"metadata":{{"name":"a"}},"x":{}"#, "[".repeat(50_000));
    let told = watch_lines(vec![entry("ADDED", &object).into_bytes()]).await;
    assert!(told[0].starts_with("rejected a: malformed (nested too deeply"), "{told:?}");
}

#[tokio::test]
async fn a_line_of_a_hundred_megabytes_is_rejected_by_name() {
    let server = Server::start(|_, mut responder| async move {
        let whole = modified("huge", 9);
        responder.chunk(&whole[..whole.len() - 3]).await;
        let filler = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            responder.chunk(&filler).await;
        }
        responder.chunk("\"}}\n").await;
        responder.line(added("after", 10)).await;
        responder.end().await;
    })
    .await;
    let events = Tap::open(&pods(&server), resume("7")).all().await;
    let told = "rejected n/huge: too_large (an entry of more than 8388608 bytes) >9";
    assert_eq!(events, [told, "put n/after@10 >10"]);
}

#[tokio::test]
async fn a_list_with_bad_items_delivers_the_good_ones() {
    let server = Server::start(|request, responder| async move {
        if request.is_watch() {
            return responder.end().await;
        }
        let huge = format!(r#"{{"metadata":{{"name":"huge"}},"x":"{}"}}"#, "s3cr3t".repeat(1_000));
        let items = [pod("a", 1), huge, pod("b", 2)].join(",");
        responder.json(200, format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#)).await;
    })
    .await;
    let events = Tap::open(&paged_pods(&server).max_object_bytes(1_000), any()).all().await;
    let told = "rejected huge: too_large (an object of more than 1000 bytes)";
    assert_eq!(events, ["begin", "item n/a@1", told, "item n/b@2", "complete >7"]);
}

#[tokio::test]
async fn an_item_that_cannot_be_identified_is_told_before_the_list_completes() {
    let server = Server::start(|request, responder| async move {
        if request.is_watch() {
            return responder.end().await;
        }
        let items = [pod("a", 1), r#"{"metadata":{}}"#.into(), pod("b", 2)].join(",");
        responder.json(200, format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#)).await;
    })
    .await;
    let events = Tap::open(&paged_pods(&server), any()).all().await;
    let told = "rejected an unknown object: nameless (no metadata.name)";
    assert_eq!(events, ["begin", "item n/a@1", told, "item n/b@2", "complete >7"]);
}

#[tokio::test]
async fn an_answer_that_is_no_list_never_completes_a_snapshot() {
    let json = "application/json";
    for (kind, body, told) in [
        (json, status(200, "s3cr3t", "m"), "not a list but a \"Status\""),
        (json, r#"{"kind":"Table","rows":["s3cr3t"]}"#.into(), "not a list but a \"Table\""),
        (json, "<html>s3cr3t</html>".into(), "expected an object at byte 0"),
        ("text/html", "<html>s3cr3t</html>".into(), "answered with text/html instead of JSON"),
        (json, r#"{"kind":"PodList","items":[]}"#.into(), "no metadata.resourceVersion"),
        (json, r#"{"metadata":{"resourceVersion":""},"items":[]}"#.into(), "no metadata.resourceVersion"),
        (json, r#"{"metadata":{"resourceVersion":"0"},"items":[]}"#.into(), "no metadata.resourceVersion"),
        (json, r#"{"metadata":{"resourceVersion":"7"},"items":"s3cr3t"}"#.into(), "its items are none"),
        (json, String::new(), "the list is cut off"),
    ] {
        let server = Server::start(move |_, responder| {
            let body = body.clone();
            async move { responder.answer(200, &[("content-type", kind)], body).await }
        })
        .await;
        let events = Tap::open(&paged_pods(&server), any()).all().await;
        assert_eq!(events[0], "begin");
        assert!(events[1].starts_with("error unavailable: list /api/v1/pods: "), "{events:?}");
        assert!(events[1].contains(told) && !events[1].contains("s3cr3t"), "{events:?}");
    }
}
