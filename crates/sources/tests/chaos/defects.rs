//! Four defects that kube-runtime 5 was seen to have: here they are tests, over the same kind of server.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use watchkeeper_informer::{Informer, Policy, Subscription};

use crate::truth::{Refusal, Trouble, Truth};
use crate::{Client, informer};

const CLIENT: Client = Client { streaming: true, page_size: None, policy: Policy::Packed };
const DATA: &str = r#"{"a":"1"}"#;

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(10), async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

async fn next(changes: &mut Subscription<ConfigMap>) -> String {
    let change = tokio::time::timeout(Duration::from_secs(10), changes.next()).await.unwrap().unwrap();
    format!("{} {}", change.kind(), change.key.name())
}

fn len(informer: &Informer<ConfigMap>) -> usize {
    informer.store().len()
}

#[tokio::test]
async fn a_subscriber_that_is_not_polled_stalls_neither_itself_nor_anyone_else() {
    let truth = Truth::new();
    let server = truth.serve().await;
    let informer = informer(&CLIENT, server.connection());
    informer.synced().await.unwrap();
    let mut changes = informer.subscribe("late");
    truth.put("a", DATA);
    until("a is there", || len(&informer) == 1).await;
    truth.delete("a");
    until("a is gone", || len(&informer) == 0).await;
    for n in 0..42 {
        truth.put(&format!("b{n:02}"), DATA);
    }
    until("the store goes on", || len(&informer) == 42).await;
    assert_eq!(next(&mut changes).await, "ADDED b00");
}

#[tokio::test]
async fn a_watch_refused_with_410_leads_to_a_new_list() {
    let truth = Truth::new();
    truth.put("a", DATA);
    let server = truth.serve().await;
    let informer = informer(&CLIENT, server.connection());
    informer.synced().await.unwrap();
    truth.refuse_next(Refusal::Status(410));
    truth.trouble(&Trouble::Cut);
    until("the watch is cut", || server.verbs().len() > 1).await;
    truth.put("b", DATA);
    until("b is there", || len(&informer) == 2).await;
    let verbs = server.verbs();
    assert_eq!(verbs[0], "stream@0");
    assert!(verbs[1].starts_with("watch@") && verbs[2].starts_with("stream@"), "{verbs:?}");
}

#[tokio::test]
async fn a_server_that_cannot_stream_lists_is_asked_for_pages() {
    let truth = Truth::new();
    truth.put("a", DATA);
    truth.refuse_next(Refusal::Status(422));
    let server = truth.serve().await;
    let informer = informer(&CLIENT, server.connection());
    informer.synced().await.unwrap();
    assert_eq!(server.verbs()[..2], ["stream@0", "list@0"]);
    truth.put("b", DATA);
    until("b is there", || len(&informer) == 2).await;
}

#[tokio::test]
async fn what_was_deleted_unseen_is_told_when_everything_is_listed_again() {
    let truth = Truth::new();
    ["a", "b", "c"].iter().for_each(|name| truth.put(name, DATA));
    let server = truth.serve().await;
    let informer = informer(&CLIENT, server.connection());
    let mut changes = informer.subscribe("witness");
    for name in ["a", "b", "c"] {
        assert_eq!(next(&mut changes).await, format!("ADDED {name}"));
    }
    truth.refuse_next(Refusal::Cut);
    truth.trouble(&Trouble::Cut);
    truth.delete("b");
    truth.compact();
    assert_eq!(next(&mut changes).await, "DELETED b");
    assert_eq!(len(&informer), 2);
}
