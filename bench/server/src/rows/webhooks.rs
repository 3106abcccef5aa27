//! Creates that an admission webhook on the same machine is asked about.

use std::time::{Duration, Instant};

use serde_json::json;
use watchkeeper_bench_report::Unit;
use watchkeeper_bench_target::{Ask, Kind, Result};

use super::{Bench, clients};
use crate::hook::Hook;
use crate::side::Side;
use crate::wanted::Wanted;

/// Clients that create at the same time.
const CLIENTS: [usize; 2] = [1, 16];
/// How many times faster we aim to be.
const TIMES: f64 = 3.0;
/// How long a server may take until it asks.
const SOON: Duration = Duration::from_secs(60);

impl Bench {
    /// One validating webhook for one kind.
    pub(super) async fn webhooks(&mut self) -> Result<()> {
        let hook = Hook::start()?;
        for count in CLIENTS {
            let kind = Kind::new(format!("asked{count}"));
            self.define(&kind).await?;
            for side in self.sides() {
                install(side, &kind, &hook).await?;
            }
            let what = format!("durable creates with a webhook, {}", clients(count));
            let rate = Wanted::new(Unit::Rate, what.clone()).better(TIMES);
            let cost = Wanted::new(Unit::Seconds, format!("{what}: CPU time of the server per create"));
            self.alternate([rate, cost], async |side| {
                let creates = side.size.requests_of(count);
                let (before, cpu) = (hook.asked(), side.cpu()?);
                let time = side.create(&kind, count, creates).await?;
                let cpu = side.cpu()? - cpu;
                if hook.asked() < before + creates {
                    return Err("the webhook was not asked about each of them".into());
                }
                Ok([creates as f64 / time, cpu / creates as f64])
            })
            .await;
        }
        Ok(())
    }
}

/// Has a server ask the webhook about a kind, and waits until it does.
async fn install(side: &mut Side, kind: &Kind, hook: &Hook) -> Result<()> {
    let plural = kind.plural();
    let authority = watchkeeper_go::base64::encode(&hook.authority);
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": plural},
        "webhooks": [{
            "name": format!("{plural}.bench.dev"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": hook.url, "caBundle": authority},
            "rules": [{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [plural]}],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    side.connection.call(Ask::post(path, &configuration.to_string())).await?;
    let (begin, before) = (Instant::now(), hook.asked());
    while hook.asked() == before {
        if begin.elapsed() > SOON {
            return Err("the webhook is not asked".into());
        }
        side.create(kind, 1, 1).await?;
    }
    Ok(())
}
