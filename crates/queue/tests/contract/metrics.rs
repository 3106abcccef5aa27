use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use watchkeeper_queue::{JobOutcome, Priority, Queue, QueueMetrics};

use super::{ManualClock, ms};

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text
}

fn registry_and_metrics() -> (Registry, QueueMetrics) {
    let mut registry = Registry::default();
    let metrics = QueueMetrics::register(&mut registry);
    (registry, metrics)
}

#[test]
fn metrics_have_the_names_labels_and_buckets_of_controller_runtime() {
    let (registry, metrics) = registry_and_metrics();
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).metrics(&metrics, "pod").build();
    queue.add(1);
    queue.add(1);
    queue.add(2);
    queue.add_with(3, Priority::LOW);
    queue.add_after(4, ms(60_000));
    clock.advance(ms(250));
    let job = queue.try_get().unwrap();
    clock.advance(ms(1500));
    job.finish(JobOutcome::Done);
    let job = queue.try_get().unwrap();
    clock.advance(ms(2000));
    let other = queue.try_get().unwrap();
    clock.advance(ms(500));

    let text = text(&registry);
    let labels = r#"name="pod",controller="pod""#;
    for line in [
        "# TYPE workqueue_depth gauge".to_owned(),
        format!(r#"workqueue_depth{{{labels},priority="0"}} 0"#),
        "# TYPE workqueue_adds counter".to_owned(),
        format!("workqueue_adds_total{{{labels}}} 3"),
        format!("workqueue_retries_total{{{labels}}} 1"),
        "# TYPE workqueue_queue_duration_seconds histogram".to_owned(),
        format!("workqueue_queue_duration_seconds_sum{{{labels}}} 5.75"),
        format!("workqueue_queue_duration_seconds_count{{{labels}}} 3"),
        format!(r#"workqueue_queue_duration_seconds_bucket{{le="0.1",{labels}}} 0"#),
        format!(r#"workqueue_queue_duration_seconds_bucket{{le="1.0",{labels}}} 1"#),
        format!(r#"workqueue_queue_duration_seconds_bucket{{le="10.0",{labels}}} 3"#),
        format!(r#"workqueue_work_duration_seconds_bucket{{le="1000.0",{labels}}} 1"#),
        format!(r#"workqueue_work_duration_seconds_bucket{{le="+Inf",{labels}}} 1"#),
        format!("workqueue_work_duration_seconds_sum{{{labels}}} 1.5"),
        format!("workqueue_unfinished_work_seconds{{{labels}}} 3.0"),
        format!("workqueue_longest_running_processor_seconds{{{labels}}} 2.5"),
    ] {
        assert!(text.lines().any(|found| found == line), "no line `{line}` in\n{text}");
    }
    assert_eq!(text.matches("workqueue_work_duration_seconds_bucket").count(), 13);
    drop((job, other));
}

#[test]
fn a_scrape_is_right_at_its_time_without_anyone_touching_the_queue() {
    let (registry, metrics) = registry_and_metrics();
    let clock = ManualClock::new();
    let queue = Queue::builder().clock(clock.clone()).metrics(&metrics, "q").build();
    queue.add(1);
    queue.add_after(2, ms(1000));
    let job = queue.try_get().unwrap();
    for second in 1..4 {
        clock.advance(ms(1000));
        let text = text(&registry);
        let unfinished =
            format!(r#"workqueue_unfinished_work_seconds{{name="q",controller="q"}} {second}.0"#);
        assert!(text.contains(&unfinished), "{text}");
        assert!(text.contains(r#"workqueue_depth{name="q",controller="q",priority="0"} 1"#), "{text}");
    }
    job.finish(JobOutcome::Done);
}

#[test]
fn a_priority_that_has_run_empty_shows_as_zero() {
    let (registry, metrics) = registry_and_metrics();
    let queue = Queue::builder().metrics(&metrics, "q").build();
    queue.add_with(1, Priority::LOW);
    assert!(text(&registry).contains(r#"priority="-100"} 1"#));
    queue.try_get().unwrap().finish(JobOutcome::Done);
    assert!(text(&registry).contains(r#"priority="-100"} 0"#));
}

#[test]
fn priorities_beyond_the_twenty_fifth_share_a_series() {
    let (registry, metrics) = registry_and_metrics();
    let queue = Queue::builder().metrics(&metrics, "q").build();
    for key in 0..100 {
        queue.add_with(key, Priority(key));
    }
    let text = text(&registry);
    assert_eq!(text.matches("workqueue_depth{").count(), 26);
    assert!(text.contains(r#"priority="exceeded_cardinality_limit"} 75"#), "{text}");
}

#[test]
fn many_queues_share_one_registry_and_end_with_their_last_handle() {
    let (registry, metrics) = registry_and_metrics();
    let build = |name: &str| Queue::builder().metrics(&metrics, name).build();
    let (a, b, also_b) = (build("a"), build("b"), build("b"));
    for queue in [&a, &b, &also_b] {
        queue.add(1);
    }
    let all = text(&registry);
    assert!(all.contains(r#"workqueue_adds_total{name="a",controller="a"} 1"#), "{all}");
    assert!(all.contains(r#"workqueue_adds_total{name="b",controller="b"} 2"#), "{all}");
    assert_eq!(all.matches("# TYPE workqueue_adds counter").count(), 1);
    drop((b, also_b));
    assert!(!text(&registry).contains(r#"name="b""#));
    assert!(text(&registry).contains(r#"name="a""#));
}
