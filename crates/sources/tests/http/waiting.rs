//! Services that answer when there is something to say.

use std::time::{Duration, Instant};

use watchkeeper_sources::http::{Http, Waiting};

use crate::service::{Fault, Service, Validator};
use crate::tap::Tap;

fn http(service: &Service) -> Http {
    // So long that a test that has to wait for it fails.
    Http::get(&service.url("/items")).items("/items").key("/id").interval(Duration::from_secs(600))
}

fn index() -> Waiting {
    Waiting::Index { header: "x-index".into(), parameter: "index".into(), wait: Duration::from_secs(60) }
}

#[tokio::test]
async fn a_service_that_waits_answers_at_once_when_something_changes() {
    for waiting in [index(), Waiting::Prefer(Duration::from_secs(60))] {
        let service = Service::start().await;
        service.put("a", 1);
        let mut tap = Tap::on(&http(&service).waiting(waiting.clone())).await;
        for value in 2..6 {
            service.put("a", value);
            tap.until_value("a", value).await;
        }
        let asked = service.requests("/items").len();
        assert!(asked <= 6, "{waiting:?}: {asked} requests");
    }
}

#[tokio::test]
async fn a_wait_that_ends_without_a_change_tells_nothing() {
    let service = Service::start().await;
    service.put("a", 1);
    let waiting =
        Waiting::Index { header: "x-index".into(), parameter: "index".into(), wait: Duration::from_secs(1) };
    let mut tap = Tap::on(&http(&service).waiting(waiting)).await;
    let told = tap.log.len();
    let _ = tokio::time::timeout(Duration::from_millis(2500), tap.until(|_| false)).await;
    assert_eq!(tap.log.len(), told);
    assert!(service.requests("/items").len() >= 3, "it asks on");
    service.put("a", 2);
    tap.until_value("a", 2).await;
}

#[tokio::test]
async fn an_index_that_goes_back_is_that_of_another_beginning() {
    let service = Service::start().await;
    service.lock().index_offset = 1000;
    service.put("a", 1);
    let mut tap = Tap::on(&http(&service).waiting(index())).await;
    // The service was set up anew, and counts from the beginning.
    service.lock().index_offset = 0;
    service.put("a", 2);
    tap.until_value("a", 2).await;
    service.put("a", 3);
    tap.until_value("a", 3).await;
}

#[tokio::test]
async fn a_service_that_does_not_wait_is_not_asked_all_the_time() {
    let service = Service::start().await;
    service.lock().waits = false;
    service.put("a", 1);
    let http =
        http(&service).waiting(Waiting::Prefer(Duration::from_secs(60))).interval(Duration::from_millis(50));
    let mut tap = Tap::on(&http).await;
    let began = Instant::now();
    let _ = tokio::time::timeout(Duration::from_millis(500), tap.until(|_| false)).await;
    let allowed = began.elapsed().as_millis() / 40 + 3;
    let asked = service.requests("/items").len();
    assert!(asked as u128 <= allowed, "{asked} requests");
}

#[tokio::test]
async fn a_service_that_does_not_wait_is_asked_at_the_interval_whatever_is_in_its_list() {
    for list in ["one item is bad", "each answer is another"] {
        let service = Service::start().await;
        {
            let mut state = service.lock();
            (state.waits, state.validator) = (false, Validator::None);
            (state.nameless, state.restless) = (list.contains("bad"), list.contains("another"));
        }
        service.put("a", 1);
        let http = http(&service)
            .waiting(Waiting::Prefer(Duration::from_secs(60)))
            .interval(Duration::from_millis(50));
        let mut tap = Tap::on(&http).await;
        let began = Instant::now();
        let _ = tokio::time::timeout(Duration::from_millis(1000), tap.until(|_| false)).await;
        let allowed = began.elapsed().as_millis() / 40 + 12;
        let asked = service.requests("/items").len();
        assert!(asked as u128 <= allowed, "{list}: {asked} requests");
    }
}

#[tokio::test]
async fn a_stream_of_events_that_is_down_holds_up_no_list() {
    let service = Service::start().await;
    service.put("a", 1);
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}/events", silent.local_addr().unwrap());
    for events in ["http://127.0.0.1:1/events", &silent, &service.url("/no-events")] {
        let http = http(&service).timeout(Duration::from_secs(600)).events(events);
        // So long that it fails if it waits for the stream.
        let mut tap = Tap::on(&http.interval(Duration::from_millis(10))).await;
        service.put("a", 2);
        tap.until_value("a", 2).await;
        service.put("a", 1);
    }
}

#[tokio::test]
async fn an_event_is_a_reason_to_ask_and_a_lost_stream_is_taken_up_again() {
    let service = Service::start().await;
    service.put("a", 1);
    let mut tap = Tap::on(&http(&service).events(&service.url("/events"))).await;
    service.put("a", 2);
    tap.until_value("a", 2).await;
    // The stream ends instead of telling of this change; what it would have told is seen all the same.
    service.fail(Fault::Closed);
    service.put("a", 3);
    tap.until_value("a", 3).await;
    service.put("a", 4);
    tap.until_value("a", 4).await;
    let streams = service.requests("/events");
    assert!(streams.len() >= 2 && streams[1].contains("last-event-id: "), "{streams:#?}");
}
