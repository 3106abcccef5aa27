//! What one entry of a watch costs from bytes to event: `cargo bench -p watchkeeper-sources --bench watch`.
//!
//! The whole path of a feed over a client whose transport is in memory: framing, reading, projecting, delivering.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that prints its result")]

use std::convert::Infallible;
use std::future::ready;
use std::time::Instant;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http_body_util::StreamBody;
use watchkeeper_connection::{Body, Connection, Error, Transport};
use watchkeeper_core::json::Cursor;
use watchkeeper_core::{Document, Event, Projection, Source as _, Start, Version};
use watchkeeper_sources::kubernetes::Kubernetes;

const ENTRIES: usize = 20_000;

/// Answers every request with the same chunks.
#[derive(Clone)]
struct Replay(Vec<Bytes>);

impl Transport for Replay {
    fn send(&self, _: http::Request<Bytes>) -> BoxFuture<'static, Result<http::Response<Body>, Error>> {
        let frames: Vec<Result<_, Infallible>> =
            self.0.iter().cloned().map(|chunk| Ok(http_body::Frame::data(chunk))).collect();
        let body = Body::wrap(StreamBody::new(stream::iter(frames)));
        Box::pin(ready(Ok(http::Response::new(body))))
    }
}

/// A pod of 5.9 kB, a third of it managed fields.
fn pod() -> String {
    let env: Vec<String> = (0..12)
        .map(|at| format!(r#"{{"name":"SETTING_{at}","value":"the value of setting {at}"}}"#))
        .collect();
    let mounts: Vec<String> = (0..6)
        .map(|at| format!(r#"{{"name":"volume-{at}","mountPath":"/var/lib/volume-{at}","readOnly":true}}"#))
        .collect();
    let managed: Vec<String> = (0..28)
        .map(|at| format!(r#""f:field{at}":{{".":{{}},"f:name":{{}},"f:value":{{}},"f:image":{{}}}}"#))
        .collect();
    let conditions: Vec<String> = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .iter()
        .map(|kind| format!(r#"{{"type":"{kind}","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z"}}"#))
        .collect();
    let container = format!(
        r#"{{"name":"web","image":"registry.example.org/shop/web:1.2.3","env":[{}],"volumeMounts":[{}],"resources":{{"limits":{{"cpu":"1","memory":"1Gi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}}}}"#,
        env.join(","),
        mounts.join(",")
    );
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-6c8f5d4b7-x2x9z","generateName":"web-6c8f5d4b7-","namespace":"shop","uid":"0b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10","resourceVersion":"123456789","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"web","pod-template-hash":"6c8f5d4b7"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-6c8f5d4b7","uid":"7b6f5a3c-52a1-4a67-9c7b-0f5f6d2f8a10","controller":true,"blockOwnerDeletion":true}}],"managedFields":[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{{}}}}}]}},"spec":{{"containers":[{container},{container}],"restartPolicy":"Always","nodeName":"node-17"}},"status":{{"phase":"Running","conditions":[{}],"hostIP":"10.0.0.17","podIP":"10.1.2.3"}}}}"#,
        managed.join(","),
        conditions.join(",")
    )
}

/// The best of five runs, in microseconds for each of so many repetitions.
fn best_of_five(repetitions: usize, mut run: impl FnMut()) -> f64 {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6 / repetitions as f64
    });
    times.fold(f64::MAX, f64::min)
}

/// What the parts cost, for comparison: times mean something only beside others of the same run.
fn compare(line: &str, pod: &str) {
    let projection = Projection::default().complete_kind("v1", "Pod");
    let read = best_of_five(ENTRIES, || {
        for _ in 0..ENTRIES {
            std::hint::black_box(Document::read(pod.as_bytes(), &projection).unwrap());
        }
    });
    println!("{read:.2} us for reading the object alone");
    let walk = best_of_five(ENTRIES, || {
        for _ in 0..ENTRIES {
            std::hint::black_box(Cursor::new(line.as_bytes()).skip().unwrap());
        }
    });
    println!("{walk:.2} us for walking over the entry with our cursor");
    let skip = best_of_five(ENTRIES, || {
        for _ in 0..ENTRIES {
            std::hint::black_box(serde_json::from_slice::<serde::de::IgnoredAny>(line.as_bytes()).unwrap());
        }
    });
    println!("{skip:.2} us for walking over the entry with serde_json");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let pod = pod();
    let line = format!("{{\"type\":\"MODIFIED\",\"object\":{pod}}}\n");
    compare(&line, &pod);
    let bytes = Bytes::from(line.repeat(ENTRIES));
    for chunk_size in [line.len(), 16 * 1024, 1024 * 1024] {
        let chunks: Vec<Bytes> = (0..bytes.len())
            .step_by(chunk_size)
            .map(|at| bytes.slice(at..(at + chunk_size).min(bytes.len())))
            .collect();
        let source =
            Kubernetes::of::<k8s_openapi::api::core::v1::Pod>(Connection::over(Replay(chunks), "default"));
        let mut best = f64::MAX;
        for _ in 0..5 {
            let mut feed = source.open(Start::Resume(Version::from(1)));
            let start = Instant::now();
            let mut count = 0;
            while let Some(event) = feed.next().await {
                assert!(matches!(event, Ok(Event::Put { .. })));
                count += 1;
            }
            assert_eq!(count, ENTRIES);
            best = best.min(start.elapsed().as_secs_f64() * 1e6 / ENTRIES as f64);
        }
        println!("{best:.2} us per entry: pods of {} bytes in chunks of {chunk_size}", pod.len());
    }
}
