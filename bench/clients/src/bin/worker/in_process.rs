//! An API server and a controller in one process, with nothing between them but function calls.
//!
//! A line `run` makes changes at a steady rate, and is answered with how long after each was sent its reconcile began: that is not
//! less than from its being committed.

use std::collections::BTreeMap;
use std::time::Duration;

use kube_client::Api;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_core::ObjectMeta;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep_until};
use watchkeeper_testkit::TestEnv;

use crate::Result;
use crate::flags::Flags;
use crate::lines::{Answer, each, unknown};
use crate::reconcile::{Idle, now};
use crate::widget::{Limits, Widget, WidgetSpec};

const DEFINITION: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.bench.example.com"}, "spec": {"group": "bench.example.com", "scope": "Namespaced",
    "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true,
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

/// Runs it.
pub(crate) fn run(flags: &Flags, runtime: &Runtime) -> Result<()> {
    let (objects, rate) = (flags.get("expect", 1_000_usize)?, flags.get("rate", 1_000.0_f64)?);
    let changes = flags.get("changes", 5_000_usize)?;
    let idle = Idle::default();
    let (_env, _running, widgets) = runtime.block_on(async {
        let env = TestEnv::start().await;
        env.install_yaml(DEFINITION).await;
        let widgets = Api::<Widget>::default_namespaced(env.client());
        for number in 0..objects {
            widgets.create(&PostParams::default(), &widget(number)).await?;
        }
        let running = idle.start(env.connection(), None).await?;
        idle.runs(objects as u64).await;
        Ok::<_, crate::Error>((env, running, widgets))
    })?;
    Answer { objects, ..Answer::default() }.print()?;
    let mut round = 0;
    each(|word, _| {
        if word != "run" {
            return unknown(word);
        }
        round += 1;
        idle.record();
        let delays = runtime.block_on(async {
            let sent = change(&widgets, objects, changes, rate, round).await?;
            let newest = sent.keys().next_back().copied().unwrap_or(0);
            let starts = idle.take(newest).await;
            let delay = |(version, began): (u64, u64)| Some(began.saturating_sub(*sent.get(&version)?));
            Ok::<_, crate::Error>(starts.into_iter().filter_map(delay).collect())
        })?;
        Answer { delays, ..Answer::default() }.print()
    })
}

fn name(number: usize) -> String {
    format!("object-{number:07}")
}

fn widget(number: usize) -> Widget {
    let spec = WidgetSpec {
        image: "registry.example.com/shop/web:1.27.3".into(),
        replicas: 0,
        port: 8080,
        env: Vec::new(),
        limits: Limits { cpu: "500m".into(), memory: "256Mi".into() },
    };
    let metadata = ObjectMeta { name: Some(name(number)), ..ObjectMeta::default() };
    Widget { metadata, spec, status: None }
}

/// Makes changes at a rate, and tells when each was sent, by version.
async fn change(
    widgets: &Api<Widget>,
    objects: usize,
    changes: usize,
    rate: f64,
    round: usize,
) -> Result<BTreeMap<u64, u64>> {
    let begin = Instant::now();
    let mut sent = BTreeMap::new();
    for number in 0..changes {
        sleep_until(begin + Duration::from_secs_f64(number as f64 / rate)).await;
        let patch = json!({"spec": {"replicas": round * changes + number}});
        let (parameters, at) = (PatchParams::default(), now());
        let changed = widgets.patch(&name(number % objects), &parameters, &Patch::Merge(&patch)).await?;
        let version = changed.metadata.resource_version.and_then(|text| text.parse().ok());
        sent.insert(version.ok_or("a change without a version")?, at);
    }
    Ok(sent)
}
