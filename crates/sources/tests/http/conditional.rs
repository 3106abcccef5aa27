//! What is asked for on a condition, and how far the answer is believed.

use std::time::Duration;

use watchkeeper_sources::http::Http;

use crate::service::{Fault, Service, Validator};
use crate::tap::Tap;

async fn shop(validator: Validator) -> (Service, Http) {
    let service = Service::start().await;
    service.lock().validator = validator;
    service.put("a", 1);
    service.put("b", 1);
    service.put("c", 1);
    let http =
        Http::get(&service.url("/items")).items("/items").key("/id").interval(Duration::from_millis(5));
    (service, http)
}

#[tokio::test]
async fn a_list_that_has_not_changed_is_not_sent_again() {
    let (service, http) = shop(Validator::Strong).await;
    let mut tap = Tap::on(&http).await;
    service.put("a", 2);
    tap.until_value("a", 2).await;
    let requests = service.requests("/items");
    assert!(
        requests.len() > 1 && requests.iter().skip(1).all(|head| head.contains("if-none-match: \"")),
        "{requests:#?}"
    );
    assert!(!requests[0].contains("if-none-match"));
}

#[tokio::test]
async fn a_change_behind_a_weak_tag_is_seen() {
    let (service, http) = shop(Validator::Weak).await;
    let mut tap = Tap::on(&http).await;
    for value in 2..5 {
        service.put("a", value);
        tap.until_value("a", value).await;
    }
}

#[tokio::test]
async fn dates_of_a_clock_that_is_wrong_are_compared_with_that_clock_only() {
    let (service, http) = shop(Validator::Date).await;
    let mut tap = Tap::on(&http).await;
    for value in 2..5 {
        service.put("a", value);
        tap.until_value("a", value).await;
    }
    let conditional =
        service.requests("/items").iter().filter(|head| head.contains("if-modified-since")).count();
    assert!(conditional > 0);
}

#[tokio::test]
async fn another_tag_on_the_same_list_is_no_change() {
    for validator in [Validator::Strong, Validator::None] {
        let (service, http) = shop(validator).await;
        let mut tap = Tap::on(&http).await;
        let told = tap.log.len();
        (0..5).for_each(|_| service.fail(Fault::AnotherTag));
        let asked = service.requests("/items").len();
        service.put("a", 2);
        tap.until_value("a", 2).await;
        assert_eq!(tap.log[told..], ["put a"]);
        assert!(service.requests("/items").len() > asked);
    }
}

#[tokio::test]
async fn an_answer_that_is_older_than_one_before_is_passed_over() {
    let (service, http) = shop(Validator::Date).await;
    let mut tap = Tap::on(&http).await;
    service.put("a", 2);
    tap.until_value("a", 2).await;
    service.fail(Fault::Stale);
    service.fail(Fault::Stale);
    while !service.lock().faults.is_empty() {
        tokio::task::yield_now().await;
        // The feed is only alive while it is read.
        let _ = tokio::time::timeout(Duration::from_millis(1), tap.until(|_| false)).await;
    }
    service.put("b", 2);
    tap.until_value("b", 2).await;
    assert!(
        !tap.log.iter().skip_while(|line| *line != "complete").skip(2).any(|line| line == "put a"),
        "{:#?}",
        tap.log
    );
}
