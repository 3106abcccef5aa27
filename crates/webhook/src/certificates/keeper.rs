use std::sync::Arc;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Kind;
use watchkeeper_go::base64;
use watchkeeper_informer::{Informer, Policy};
use watchkeeper_sources::kubernetes::Kubernetes;

use super::leaf::Leaf;
use super::record::{Data, Record, Trusted};
use super::status::{ShownCertificate, Status};
use super::step::{Rotation, Step, View, step};
use crate::api::{Api, ApiError};
use crate::configuration::{Configuration, ConfigurationKind, Shown};
use crate::metrics::WebhookMetrics;

/// Put on the Secret by whoever wants a rotation now.
pub(crate) const ROTATE: &str = "webhook.watchkeeper.dev/rotate";
/// How long to wait after somebody else was faster.
const CONFLICT_DELAY: Duration = Duration::from_millis(20);
/// How long to wait after a failure at first, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));
/// How soon to look again at what should be in force and is not.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// More steps than these without a pause are somebody else who writes the same objects all the time.
const STEPS: u32 = 50;

/// Where the authorities are kept.
pub(crate) enum Vault {
    /// In a Secret, which all replicas share.
    Secret { namespace: String, name: String },
    /// In this process, which is the only one.
    Memory(Option<Record>),
}

/// Keeps authorities, the own certificate and the configurations as they should be, for as long as it runs. The shell around
/// [`step`].
pub(crate) struct Keeper {
    pub(crate) api: Api,
    pub(crate) vault: Vault,
    pub(crate) configurations: Vec<Configuration>,
    /// The names and addresses that servers of these webhooks are asked by.
    pub(crate) names: Vec<String>,
    pub(crate) rotation: Rotation,
    pub(crate) certificate: ShownCertificate,
    pub(crate) status: Status,
    pub(crate) metrics: WebhookMetrics,
    /// Dropped when everything was published, or could not be at first.
    pub(crate) published: Option<oneshot::Sender<()>>,
    pub(crate) memory: Memory,
}

/// What a process remembers from one turn to the next. It is lost with it, and nothing depends on that.
#[derive(Default)]
pub(crate) struct Memory {
    leaf: Option<Leaf>,
    /// Which configurations this process has brought to its own version.
    settled: Option<(u64, SystemTime)>,
    has_published: bool,
}

/// What was read in one turn.
struct Read {
    live: Vec<Option<Value>>,
    /// The Secret as an object.
    secret: Option<Value>,
    record: Option<Record>,
}

impl Keeper {
    pub(crate) async fn run(&mut self, stop: CancellationToken) {
        let wake = Arc::new(Notify::new());
        let _watches = self.watch(&wake);
        let (mut failures, mut steps) = (0, 0);
        loop {
            let turn = tokio::select! {
                () = stop.cancelled() => return,
                turn = self.turn() => turn,
            };
            let pause = match turn {
                Ok(Some(pause)) => {
                    (failures, steps) = (0, 0);
                    pause
                }
                Ok(None) if steps < STEPS => {
                    steps += 1;
                    continue;
                }
                Ok(None) => BACKOFF.1,
                Err(ApiError::Conflict(_)) if steps < STEPS => {
                    steps += 1;
                    CONFLICT_DELAY
                }
                Err(error) => {
                    self.status.set(Err(error.to_string()));
                    drop(self.published.take());
                    failures = u32::min(failures + 1, 16);
                    (BACKOFF.0 * (1 << (failures - 1).min(10))).min(BACKOFF.1)
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Takes the configurations away, for one who is the only one to serve them.
    pub(crate) async fn withdraw(api: &Api, configurations: &[Configuration]) {
        let of_admission = [ConfigurationKind::Mutating, ConfigurationKind::Validating];
        for configuration in configurations.iter().filter(|one| of_admission.contains(&one.kind)) {
            if let Err(error) = api.delete(&configuration.path()).await {
                tracing::warn!(%error, "webhook configuration could not be removed");
            }
        }
    }

    /// Reads, decides, and does one step. `None` means that the next one may follow at once.
    async fn turn(&mut self) -> Result<Option<Duration>, ApiError> {
        let read = self.read().await?;
        let now = SystemTime::now();
        let shown: Vec<Option<Shown>> = self
            .configurations
            .iter()
            .zip(&read.live)
            .map(|(configuration, live)| live.as_ref().map(|live| configuration.shown(live)))
            .collect();
        if let Some(record) = &read.record {
            self.show_leaf(record, &shown, now).map_err(ApiError::Other)?;
        }
        self.note_settled(read.record.as_ref(), &shown, now);
        let view = View {
            record: read.record.as_ref(),
            shown: &shown,
            starting: !self.memory.has_published,
            settled_since: self.memory.settled.map(|(_, since)| since),
            asked: read
                .secret
                .as_ref()
                .is_some_and(|secret| secret["metadata"]["annotations"][ROTATE].is_string()),
            now,
        };
        let step = step(&view, &self.rotation);
        tracing::debug!(?step, "webhook certificates");
        match step {
            Step::Create => {
                let after = shown.iter().flatten().map(|shown| shown.sequence).max().unwrap_or(0);
                let record = Record::first(self.authority(after.saturating_add(1), now)?, after, now);
                self.store(&read, record).await?;
                self.metrics.step("create");
            }
            Step::Publish(at) => {
                let Some(record) = &read.record else { return Ok(None) };
                self.publish(at, read.live[at].as_ref(), record).await?;
                self.metrics.step("publish");
            }
            Step::Announce | Step::Promote | Step::Drop => {
                let Some(record) = &read.record else { return Ok(None) };
                let (name, next) = match step {
                    Step::Announce => {
                        let next = self.authority(record.sequence.saturating_add(1), now)?;
                        ("announce", record.announced(next))
                    }
                    Step::Promote => ("promote", record.promoted(now)),
                    _ => ("drop", record.dropped()),
                };
                tracing::info!(step = name, sequence = next.sequence, "webhook authority is rotated");
                self.store(&read, next).await?;
                self.metrics.step(name);
            }
            Step::ReadAgain => return Ok(Some(CONFLICT_DELAY)),
            Step::Wait(time) => {
                self.memory.has_published = true;
                let believed = self.believed(&shown, now);
                let is_believed = believed.is_ok();
                self.status.set(believed);
                if !is_believed {
                    return Ok(Some(time.min(POLL_INTERVAL)));
                }
                drop(self.published.take());
                return Ok(Some(time));
            }
        }
        Ok(None)
    }

    /// Configurations first: what they show is not newer than the record then.
    async fn read(&self) -> Result<Read, ApiError> {
        let mut live = Vec::new();
        for configuration in &self.configurations {
            live.push(self.api.get(&configuration.path()).await?);
        }
        let (secret, record) = match &self.vault {
            Vault::Memory(record) => (None, record.clone()),
            Vault::Secret { namespace, name } => {
                let secret = self.api.get(&secret_path(namespace, Some(name))).await?;
                let record = secret.as_ref().map(|secret| Record::read(&data(secret))).transpose();
                let record = record.map_err(|why| {
                    ApiError::Other(format!(
                        "Secret {namespace}/{name} does not have the authorities of webhooks: {why}; delete it to have it made anew"
                    ))
                })?;
                (secret, record)
            }
        };
        Ok(Read { live, secret, record })
    }

    /// Shows a certificate of who signs now.
    fn show_leaf(&mut self, record: &Record, shown: &[Option<Shown>], now: SystemTime) -> Result<(), String> {
        let signer = &record.current;
        if self.memory.leaf.as_ref().is_none_or(|leaf| leaf.is_due(signer, now)) {
            let leaf = Leaf::issue(signer, &self.names, now, self.rotation.certificate_life)?;
            let end = leaf.end.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            self.metrics.certificate_end.set(i64::try_from(end).unwrap_or(i64::MAX));
            self.certificate.set(leaf.certificate.clone());
            self.memory.leaf = Some(leaf);
        }
        if self.status.get().is_ok() {
            self.status.set(self.believed(shown, now));
        }
        Ok(())
    }

    /// Whether every configuration makes an API server believe the own certificate.
    fn believed(&self, shown: &[Option<Shown>], now: SystemTime) -> Result<(), String> {
        let leaf = self.memory.leaf.as_ref().ok_or("there is no certificate yet")?;
        for (configuration, shown) in self.configurations.iter().zip(shown) {
            let named = |why: &str| format!("{}: {why}", configuration.path());
            let shown = shown.as_ref().ok_or_else(|| named("is not there"))?;
            if !shown.in_force {
                return Err(named("is not in force yet"));
            }
            leaf.verify(&shown.bundle, now).map_err(|why| named(&why))?;
        }
        Ok(())
    }

    /// Notes since when everything shows what it should.
    fn note_settled(&mut self, record: Option<&Record>, shown: &[Option<Shown>], now: SystemTime) {
        let settled = record.filter(|record| {
            let bundle = record.bundle();
            shown.iter().all(|shown| shown.as_ref().is_some_and(|shown| shown.bundle == bundle))
        });
        self.memory.settled = match (settled, self.memory.settled) {
            (None, _) => None,
            (Some(record), Some((sequence, since))) if sequence == record.sequence => Some((sequence, since)),
            (Some(record), _) => Some((record.sequence, now)),
        };
    }

    fn authority(&self, number: u64, now: SystemTime) -> Result<Trusted, ApiError> {
        let name = format!("{} webhook authority {number}", self.api.manager);
        Trusted::generate(&name, now, self.rotation.authority_life).map_err(ApiError::Other)
    }

    /// Writes the record, on condition that it is still the one that was read.
    async fn store(&mut self, read: &Read, record: Record) -> Result<(), ApiError> {
        let (namespace, name) = match &mut self.vault {
            Vault::Memory(kept) => {
                *kept = Some(record);
                return Ok(());
            }
            Vault::Secret { namespace, name } => (namespace, name),
        };
        let data: Map<String, Value> =
            record.data().iter().map(|(name, value)| (name.clone(), base64::encode(value).into())).collect();
        match &read.secret {
            None => {
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": {"name": name, "namespace": namespace},
                    "data": data,
                });
                self.api.create(&secret_path(namespace, None), &secret).await
            }
            Some(secret) => {
                let mut secret = secret.clone();
                secret["data"] = data.into();
                if let Some(annotations) = secret["metadata"]["annotations"].as_object_mut() {
                    annotations.remove(ROTATE);
                }
                self.api.replace(&secret_path(namespace, Some(name)), &secret).await
            }
        }
    }

    /// Makes a configuration show the authorities of the record, on condition that it is still the one that was read.
    async fn publish(&self, at: usize, live: Option<&Value>, record: &Record) -> Result<(), ApiError> {
        let (configuration, bundle) = (&self.configurations[at], record.bundle());
        let Some(live) = live else {
            if let Some(why) = configuration.missing() {
                return Err(ApiError::Other(why));
            }
            let whole = || configuration.object(Some(&bundle), record.sequence);
            let object = configuration.skeleton().unwrap_or_else(whole);
            return self.api.create(configuration.kind.path(), &object).await;
        };
        // What another version of the program applied stays, once this one has said what it wants.
        let is_ours = configuration.shown(live).is_ours || !self.memory.has_published;
        let mut object = match is_ours {
            true => configuration.object(Some(&bundle), record.sequence),
            false => configuration.rebundled(live, Some(&bundle), record.sequence),
        };
        object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        if configuration.remove_other_way(live, &mut object) {
            return self.api.merge(&configuration.path(), &object).await;
        }
        self.api.apply(&configuration.path(), &object).await
    }

    /// Watches everything that is kept. What changes is a reason to look, and nothing more.
    fn watch(&self, wake: &Arc<Notify>) -> JoinSet<()> {
        let mut watches = JoinSet::new();
        if let Vault::Secret { namespace, name } = &self.vault {
            self.watch_one::<Secret>(Some(namespace), name, wake, &mut watches);
        }
        for Configuration { kind, name, .. } in &self.configurations {
            match kind {
                ConfigurationKind::Mutating => {
                    self.watch_one::<MutatingWebhookConfiguration>(None, name, wake, &mut watches);
                }
                ConfigurationKind::Validating => {
                    self.watch_one::<ValidatingWebhookConfiguration>(None, name, wake, &mut watches);
                }
                ConfigurationKind::Definition | ConfigurationKind::Conversion => {
                    self.watch_one::<CustomResourceDefinition>(None, name, wake, &mut watches);
                }
            }
        }
        watches
    }

    fn watch_one<K: Kind>(
        &self,
        namespace: Option<&str>,
        name: &str,
        wake: &Arc<Notify>,
        to: &mut JoinSet<()>,
    ) {
        let source = Kubernetes::of::<K>(self.api.connection.clone())
            .fields(&format!("metadata.name={name}"))
            .metadata_only();
        let source = namespace.into_iter().fold(source, |source, namespace| source.namespace(namespace));
        let informer = Informer::<K>::builder().policy(Policy::Metadata).start(source);
        let wake = Arc::clone(wake);
        to.spawn(async move {
            let mut changes = informer.subscribe("webhooks");
            while changes.next().await.is_some() {
                wake.notify_one();
            }
        });
    }
}

pub(crate) fn secret_path(namespace: &str, name: Option<&str>) -> String {
    let all = format!("/api/v1/namespaces/{namespace}/secrets");
    name.map_or_else(|| all.clone(), |name| format!("{all}/{name}"))
}

fn data(secret: &Value) -> Data {
    let fields = secret["data"].as_object().into_iter().flatten();
    fields.filter_map(|(name, value)| Some((name.clone(), base64::decode(value.as_str()?).ok()?))).collect()
}
