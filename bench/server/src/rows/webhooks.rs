//! Creates that an admission webhook on the same machine is asked about, creates beside webhooks about other kinds, and lists that a
//! conversion webhook is asked about.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use watchkeeper_bench_report::{Samples, Unit};
use watchkeeper_bench_target::{Ask, DEFINITIONS, GROUP, Kind, Result};

use super::lists::read;
use super::{Bench, PREPARATION, clients, limited};
use crate::hook::{CONVERT, Hook};
use crate::side::Side;
use crate::wanted::Wanted;

/// Clients that create at the same time.
const CLIENTS: [usize; 2] = [1, 16];
/// How many times faster we aim to be.
const TIMES: f64 = 3.0;
/// What a create may take that no webhook is about, as a multiple of one where there are none: what is more is more than the noise of a
/// quiet machine.
const UNASKED: f64 = 1.05;
/// How long a server may take until it asks: it has to notice the configuration first.
const CONFIGURED_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a server is asked whether it serves a version: seldom enough not to be measured.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Configurations about kinds that nobody writes.
const OTHERS: usize = 100;
/// Objects that one call may be about.
const BATCH: usize = 500;

impl Bench {
    /// One validating webhook for one kind; then a kind that nobody asks about; then a kind in two versions.
    pub(super) async fn webhooks(&mut self) -> Result<()> {
        let hook = Hook::start()?;
        let unasked = Kind::new("unasked");
        self.define(&unasked).await?;
        let alone = self.creates_of(&unasked, "without webhooks").await;
        for count in CLIENTS {
            self.asked(count, &hook).await?;
        }
        let beside = "beside webhooks about other kinds".to_owned();
        let cost = self.creates_of(&unasked, &beside).await;
        self.compare(&beside, cost, alone);
        for side in self.sides() {
            for number in 0..OTHERS {
                configure(side, &format!("other{number}"), &hook).await?;
            }
        }
        let beside = format!("beside {OTHERS} webhooks about other kinds");
        let cost = self.creates_of(&unasked, &beside).await;
        self.compare(&beside, cost, alone);
        self.converted(&hook).await
    }

    async fn asked(&mut self, count: usize, hook: &Hook) -> Result<()> {
        let kind = Kind::new(format!("asked{count}"));
        self.define(&kind).await?;
        for side in self.sides() {
            install(side, &kind, hook).await?;
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
        Ok(())
    }

    /// What creates of a kind that no webhook is about cost us beside webhooks, as a multiple of what they cost without any.
    fn compare(&mut self, beside: &str, cost: Option<f64>, alone: Option<f64>) {
        let what = format!(
            "durable creates {beside}: CPU time of the server, as a multiple of that without webhooks"
        );
        let row = Wanted::new(Unit::Number, what).at_most(UNASKED);
        match cost.zip(alone).filter(|(_, alone)| *alone > 0.0) {
            Some((cost, alone)) => self.add(row, (cost / alone).into()),
            None => {
                let failure = Some("one of them was not measured".to_owned());
                let row = row.found(self.group, Samples::default(), Ok(Samples::default()), failure);
                self.report.rows.push(row);
            }
        }
    }

    /// Creates of a kind that no webhook is about. Gives the CPU time that one of them took us, over all rounds, since that of one round
    /// is known to a hundredth of a second only.
    async fn creates_of(&mut self, kind: &Kind, beside: &str) -> Option<f64> {
        let what = format!("durable creates {beside}, {}", clients(1));
        let rate = Wanted::new(Unit::Rate, what.clone());
        let cost = Wanted::new(Unit::Seconds, format!("{what}: CPU time of the server per create"));
        self.alternate([rate, cost], async |side| {
            let (creates, cpu) = (side.size.requests_of(1), side.cpu()?);
            let time = side.create(kind, 1, creates).await?;
            Ok([creates as f64 / time, (side.cpu()? - cpu) / creates as f64])
        })
        .await;
        let row = self.report.rows.last().filter(|row| row.failure.is_none())?;
        row.ours.mean()
    }

    /// A list in a version that objects are not stored in.
    async fn converted(&mut self, hook: &Hook) -> Result<()> {
        let (kind, count) = (Kind::new("converted"), self.size.objects);
        self.fill(&kind, count).await?;
        let what = format!("list of {count} in another version");
        eprintln!("measuring: {what}");
        // There is one first time for each.
        let mut found = Vec::new();
        for side in self.sides() {
            let before = hook.asked();
            // From the definition on: kube-apiserver converts what is stored as soon as it serves a version, before somebody lists it.
            let begin = Instant::now();
            let listed = limited(PREPARATION, async {
                add_version(side, &kind, hook).await?;
                read(side, Ask::get(&other_version(&kind)), count).await
            });
            let calls = listed.await.map(|_| (hook.asked() - before) as f64);
            found.push(calls.map(|calls| [begin.elapsed().as_secs_f64(), calls]));
        }
        let mut found = found.into_iter();
        let ours = found.next().unwrap_or_else(|| Err("it was not measured".into()));
        let peer = found.next();
        let rows = [
            Wanted::new(Unit::Seconds, format!("{what}, first time, from its definition on")).better(TIMES),
            Wanted::new(Unit::Number, format!("{what}, first time: calls of the webhook"))
                .at_most(count.div_ceil(BATCH) as f64),
        ];
        for (at, row) in rows.into_iter().enumerate() {
            let of = |side: &Result<[f64; 2]>| match side {
                Ok(values) => (Samples::from(values[at]), None),
                Err(error) => (Samples::default(), Some(error.to_string())),
            };
            let (ours, mut failure) = of(&ours);
            let peer = match &peer {
                None => Err(self.peer.as_ref().err().map_or("there is none", |why| why.as_str())),
                Some(peer) => {
                    let (samples, why) = of(peer);
                    failure = failure.or(why);
                    Ok(samples)
                }
            };
            self.report.rows.push(row.found(self.group, ours, peer, failure));
        }
        let again = Wanted::new(Unit::Seconds, format!("{what}, again")).better(TIMES);
        let calls = Wanted::new(Unit::Number, format!("{what}, again: calls of the webhook")).at_most(0.0);
        self.alternate([again, calls], async |side| {
            let before = hook.asked();
            let time = read(side, Ask::get(&other_version(&kind)), count).await?;
            Ok([time, (hook.asked() - before) as f64])
        })
        .await;
        Ok(())
    }
}

fn other_version(kind: &Kind) -> String {
    format!("/apis/{GROUP}/v2/{}", kind.plural())
}

/// Has a server serve a kind in another version, too, and waits until it does.
async fn add_version(side: &mut Side, kind: &Kind, hook: &Hook) -> Result<()> {
    let definition: Value = serde_json::from_str(&kind.definition())?;
    let stored = &definition["spec"]["versions"][0];
    let mut other = stored.clone();
    (other["name"], other["storage"]) = ("v2".into(), false.into());
    let authority = watchkeeper_go::base64::encode(&hook.authority);
    let change = json!({"spec": {
        "versions": [stored, other],
        "conversion": {"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("{}{CONVERT}", hook.url), "caBundle": authority},
        }},
    }})
    .to_string();
    let path = format!("{DEFINITIONS}/{}.{GROUP}", kind.plural());
    side.connection.call(Ask::patch(&path, "application/merge-patch+json", &change)).await?;
    // One that is not there is in no version: nothing is converted.
    let nobody = format!("/apis/{GROUP}/v2/namespaces/nowhere/{}", kind.plural());
    let begin = Instant::now();
    while let Err(error) = side.connection.call(Ask::get(&nobody)).await {
        if begin.elapsed() > CONFIGURED_TIMEOUT {
            return Err(error);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Has a server ask the webhook about a kind, and waits until it does.
async fn install(side: &mut Side, kind: &Kind, hook: &Hook) -> Result<()> {
    configure(side, kind.plural(), hook).await?;
    let (begin, before) = (Instant::now(), hook.asked());
    while hook.asked() == before {
        if begin.elapsed() > CONFIGURED_TIMEOUT {
            return Err("the webhook is not asked".into());
        }
        side.create(kind, 1, 1).await?;
    }
    Ok(())
}

/// Tells a server of a webhook about a kind.
async fn configure(side: &mut Side, plural: &str, hook: &Hook) -> Result<()> {
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
    side.connection.call(Ask::post(path, &configuration.to_string())).await.map(drop)
}
