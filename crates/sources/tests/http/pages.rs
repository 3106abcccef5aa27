//! Lists in pages.

use std::time::Duration;

use serde_json::Value;
use watchkeeper_core::{Change, ChangeKind, Error};
use watchkeeper_informer::{Informer, Object, SourceBackoff, Subscription};
use watchkeeper_sources::http::{Http, Pages};

use crate::service::{Fault, Service};
use crate::tap::{LONG, Tap};

async fn shop(pages: Pages) -> (Service, Http) {
    let service = Service::start().await;
    service.lock().page = Some(3);
    service.change(|items| items.extend((0..10).map(|number| (format!("n{number}"), 1))));
    let http =
        Http::get(&service.url("/items")).items("/items").key("/id").interval(Duration::from_millis(5));
    (service, http.pages(pages))
}

#[tokio::test]
async fn all_pages_are_one_list() {
    let token = Pages::Token { pointer: "/token".into(), parameter: "page".into() };
    for pages in [Pages::Link, Pages::Next("/next".into()), token] {
        let (service, http) = shop(pages).await;
        let mut tap = Tap::on(&http).await;
        assert_eq!(tap.values.len(), 10);
        service.put("n9", 2);
        tap.until_value("n9", 2).await;
        service.remove("n5");
        tap.until(|tap| tap.values.len() == 9).await;
    }
}

#[tokio::test]
async fn a_list_that_moves_while_its_pages_are_read_loses_nothing() {
    let (service, http) = shop(Pages::Link).await;
    let mut tap = Tap::on(&http).await;
    let mover = {
        let service = service.clone();
        tokio::spawn(async move {
            for number in 0..40 {
                // What comes and goes at the front moves everything behind it from page to page.
                service.put("a", number);
                tokio::time::sleep(Duration::from_millis(3)).await;
                service.remove("a");
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        })
    };
    service.put("n9", 2);
    let mut failed = None;
    while !mover.is_finished() && failed.is_none() {
        tokio::select! {
            error = tap.failure() => failed = Some(error),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    // It may give up, but it never says that one of the others was gone.
    assert!(failed.as_ref().is_none_or(|error| matches!(error, Error::Unavailable { .. })), "{failed:?}");
    assert!(!tap.log.iter().any(|line| line.starts_with("gone n")), "{:#?}", tap.log);
}

#[tokio::test]
async fn a_list_that_is_old_in_all_its_pages_is_not_believed_the_first_time() {
    let (service, http) = shop(Pages::Link).await;
    let mut tap = Tap::on(&http).await;
    service.remove("n5");
    tap.until(|tap| tap.values.len() == 9).await;
    let told = tap.log.len();
    service.fail(Fault::Stale);
    while !service.lock().faults.is_empty() {
        tokio::select! {
            error = tap.failure() => panic!("{error}"),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
    service.put("n9", 2);
    tap.until_value("n9", 2).await;
    assert_eq!(tap.log[told..], ["put n9"]);
}

/// A store of the shop with its ten items, and what changes from then on.
async fn stocked(http: Http) -> (Informer<Value>, Subscription<Value>) {
    let quick = Duration::from_millis(20);
    let backoff = SourceBackoff::new(Duration::from_millis(1), quick);
    let informer = Informer::<Value>::builder().backoff(backoff).start(http);
    let mut changes = informer.subscribe("test");
    for _ in 0..10 {
        assert_eq!(next(&mut changes).await.kind(), ChangeKind::Added);
    }
    (informer, changes)
}

async fn next(changes: &mut Subscription<Value>) -> Change<Object<Value>> {
    tokio::time::timeout(LONG, changes.next()).await.unwrap().unwrap()
}

#[tokio::test]
async fn an_empty_list_confirms_no_other_if_a_whole_one_was_told_between_them() {
    let (service, http) = shop(Pages::Link).await;
    let (_informer, mut changes) = stocked(http).await;
    for value in 2..5 {
        service.fail(Fault::Empty);
        while !service.lock().faults.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        service.put("n9", value);
        let change = next(&mut changes).await;
        assert_eq!((change.key.name(), change.kind()), ("n9", ChangeKind::Modified));
    }
}

#[tokio::test]
async fn an_empty_list_confirms_another_if_pages_were_read_only_once_between_them() {
    let (service, http) = shop(Pages::Link).await;
    let (_informer, mut changes) = stocked(http).await;
    // All four pages are read once, which is not enough. As reading them again fails, nothing but two empty lists is told.
    let whole = std::iter::repeat_n(Fault::AnotherTag, 4);
    let failed = Fault::Status(500, String::new());
    service.lock().faults.extend([Fault::Empty].into_iter().chain(whole).chain([failed, Fault::Empty]));
    let change = next(&mut changes).await;
    assert_ne!(change.kind(), ChangeKind::Added);
    assert!(service.lock().faults.is_empty(), "the first one alone deletes nothing");
}

#[tokio::test]
async fn a_page_that_fails_makes_the_list_no_shorter() {
    let (service, http) = shop(Pages::Link).await;
    let mut tap = Tap::on(&http).await;
    service.fail(Fault::Status(500, String::new()));
    assert!(matches!(tap.failure().await, Error::Unavailable { answered: true, .. }));
    assert_eq!(tap.values.len(), 10);
}

#[tokio::test]
async fn pages_on_another_host_are_not_asked_for() {
    let (service, http) = shop(Pages::Link).await;
    let elsewhere = "link: <http://127.0.0.2:1/items?page=1>; rel=\"next\"\r\n";
    service.fail(Fault::Status(200, elsewhere.into()));
    let error = Tap::closed(&http).failure().await;
    assert!(error.to_string().contains("the next page is elsewhere, at http://127.0.0.2:1/items"), "{error}");
}
