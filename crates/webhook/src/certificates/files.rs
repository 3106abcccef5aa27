//! Certificates that somebody else keeps in files.
//!
//! The files of several replicas do not change at the same moment: a volume may lag behind its Secret by minutes. So no replica takes
//! away what another one may need. Each adds the authorities of its own files to what configurations show, and shows a new certificate
//! only once every configuration has shown its authority for a while. Authorities go when they have expired.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use watchkeeper_front::ServerCertificate;

use super::bundle::{Bundle, life};
use super::leaf::verify;
use super::status::{ShownCertificate, Status};
use crate::api::{Api, ApiError};
use crate::configuration::{Configuration, bundles, is_injected};

/// How often files and configurations are read again.
const INTERVAL: Duration = Duration::from_secs(5);
/// How soon to look again at what should be and is not.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How long configurations have to show a new authority before its certificate is shown: as long as API servers may take to hear of it.
const SETTLE: Duration = Duration::from_secs(10);

/// Shows the certificate of the files, and has configurations believe it first.
pub(crate) struct FilesKeeper {
    api: Api,
    folder: PathBuf,
    configurations: Vec<Configuration>,
    /// The name or address that API servers ask for.
    name: String,
    certificate: ShownCertificate,
    status: Status,
    /// Dropped when everything was published, or could not be at first.
    published: Option<oneshot::Sender<()>>,
    memory: Memory,
}

/// What a process remembers from one turn to the next.
#[derive(Default)]
struct Memory {
    has_published: bool,
    /// The files whose certificate is shown.
    shown: Option<Contents>,
    /// The files whose certificate every configuration believes, and since when.
    believed: Option<(Contents, Instant)>,
}

/// What the files have.
#[derive(Clone, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    /// None leaves bundles to somebody else.
    authorities: Option<String>,
}

impl Contents {
    /// The certificate, and those between it and its authority.
    fn chain(&self) -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(&self.certificate).filter_map(Result::ok).collect()
    }

    fn has_expired(&self, now: SystemTime) -> bool {
        self.chain().first().and_then(life).is_some_and(|(_, end)| end <= now)
    }
}

impl FilesKeeper {
    pub(crate) fn new(
        api: Api,
        folder: PathBuf,
        configurations: Vec<Configuration>,
        name: String,
        certificate: ShownCertificate,
        status: Status,
        published: Option<oneshot::Sender<()>>,
    ) -> Self {
        Self { api, folder, configurations, name, certificate, status, published, memory: Memory::default() }
    }

    /// Runs until `stop`.
    pub(crate) async fn run(&mut self, stop: CancellationToken) {
        loop {
            let turn = tokio::select! {
                () = stop.cancelled() => return,
                turn = self.turn() => turn,
            };
            // One that is not in force at once is no failure to be waited for.
            if !matches!(turn, Err(ApiError::Conflict(_))) {
                drop(self.published.take());
            }
            let pause = turn.as_ref().copied().unwrap_or(RETRY_INTERVAL);
            if let Err(error) = turn {
                self.status.set(Err(error.to_string()));
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// Reads everything and does what is to be done. Returns how long nothing is.
    async fn turn(&mut self) -> Result<Duration, ApiError> {
        let files = read(&self.folder)?;
        let certificate = ServerCertificate::from_pem(&files.certificate, &files.key);
        let certificate = certificate.map_err(|error| ApiError::Other(error.to_string()))?;
        let own = files.authorities.as_deref().map(Bundle::read);
        let mut live = Vec::new();
        for configuration in &self.configurations {
            live.push(self.publish(configuration, own.as_ref()).await?);
        }
        self.memory.has_published = true;
        let now = SystemTime::now();
        let left = self.note_believed(&files, &live, now);
        let is_shown = self.memory.shown.as_ref() == Some(&files);
        // A certificate that is not believed yet is better than none, and than one that nobody can believe.
        let is_better = self.memory.shown.as_ref().is_none_or(|shown| shown.has_expired(now));
        if !is_shown && (is_better || left.is_some_and(|left| left.is_zero())) {
            self.certificate.set(certificate);
            self.memory.shown = Some(files);
        }
        let believed = self.memory.shown.as_ref().map_or(Ok(()), |shown| self.believes(shown, &live, now));
        let is_believed = believed.is_ok();
        self.status.set(believed);
        let left = left.filter(|left| !left.is_zero());
        Ok(if is_believed { left.unwrap_or(INTERVAL).min(INTERVAL) } else { RETRY_INTERVAL })
    }

    /// Takes note of whether every configuration believes the certificate of the files. Returns how long that has to go on before it
    /// is shown.
    fn note_believed(&mut self, files: &Contents, live: &[Value], now: SystemTime) -> Option<Duration> {
        if self.believes(files, live, now).is_err() {
            self.memory.believed = None;
            return None;
        }
        let since = match &self.memory.believed {
            Some((known, since)) if known == files => *since,
            _ => Instant::now(),
        };
        self.memory.believed = Some((files.clone(), since));
        Some(SETTLE.saturating_sub(since.elapsed()))
    }

    /// Whether every configuration makes an API server believe the certificate of these files.
    fn believes(&self, files: &Contents, live: &[Value], now: SystemTime) -> Result<(), String> {
        let (chain, names) = (files.chain(), std::slice::from_ref(&self.name));
        for (configuration, live) in self.configurations.iter().zip(live) {
            // Without a bundle, an API server believes what its machine does, which is not known here.
            for bundle in
                bundles(live).iter().filter(|bundle| files.authorities.is_some() || !bundle.is_empty())
            {
                let named = |why: String| format!("{}: {why}", configuration.path());
                // One that is an authority itself is believed; Go does not mind what else it could be used for.
                let is_its_own = chain.first().is_some_and(|leaf| Bundle::read(bundle).has(leaf));
                if !is_its_own {
                    verify(&chain, names, bundle, now).map_err(named)?;
                }
            }
        }
        Ok(())
    }

    /// Has a configuration show the own authorities, beside those that it shows. Returns it as it is then.
    async fn publish(&self, configuration: &Configuration, own: Option<&Bundle>) -> Result<Value, ApiError> {
        let path = configuration.path();
        let live = self.api.get(&path).await?;
        if let Some(why) = configuration.missing().filter(|_| live.is_none()) {
            return Err(ApiError::Other(why));
        }
        let wanted = wanted(live.as_ref(), own, SystemTime::now());
        let shown = live.as_ref().map(|live| configuration.shown(live));
        let is_ours = shown.as_ref().is_none_or(|shown| shown.is_ours);
        let is_right = live.as_ref().is_some_and(|live| {
            let shows = |wanted: &String| bundles(live).iter().all(|bundle| bundle == wanted);
            let has_drifted = shown.as_ref().is_some_and(|shown| shown.has_drifted);
            wanted.as_ref().is_none_or(shows) && (is_ours || self.memory.has_published) && !has_drifted
        });
        let live = match live {
            Some(live) if is_right => Some(live),
            live => {
                let mut object = match &live {
                    // What another version of the program applied stays, once this one has said what it wants.
                    Some(live) if !is_ours && self.memory.has_published => {
                        configuration.rebundled(live, wanted.as_deref(), 0)
                    }
                    _ => configuration.object(wanted.as_deref(), 0),
                };
                let mut merges = false;
                if let Some(live) = live {
                    merges = configuration.remove_other_way(&live, &mut object);
                    // Another replica may add its own at the same time.
                    object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
                }
                match merges {
                    true => self.api.merge(&path, &object).await?,
                    false => self.api.apply(&path, &object).await?,
                }
                self.api.get(&path).await?
            }
        };
        let in_force = live.filter(|live| configuration.shown(live).in_force);
        in_force.ok_or_else(|| ApiError::Conflict(format!("{path} is not in force yet")))
    }
}

/// The authorities that a configuration should show, in PEM: those that it shows and the own ones. `None` leaves them to somebody else.
fn wanted(live: Option<&Value>, own: Option<&Bundle>, now: SystemTime) -> Option<String> {
    let shown = live.map(bundles).unwrap_or_default();
    if live.is_some_and(is_injected) {
        // What somebody else has filled in is applied as it is, so that it does not go.
        return shown.into_iter().find(|bundle| !bundle.is_empty());
    }
    let own = own?;
    let all = shown.iter().fold(Bundle::default(), |all, bundle| all.and(&Bundle::read(bundle), now));
    // What is right already stays as it is written.
    let is_right = |first: &&String| {
        shown.iter().all(|other| other == *first) && Bundle::read(first) == all && all.contains(own)
    };
    Some(shown.first().filter(is_right).cloned().unwrap_or_else(|| own.clone().and(&all, now).text()))
}

/// Reads the files, twice: they may be replaced meanwhile, one after the other.
fn read(folder: &Path) -> Result<Contents, ApiError> {
    let file = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| ApiError::Other(format!("{}: {error}", path.display())))
    };
    let all = || {
        Ok(Contents {
            certificate: file("tls.crt")?,
            key: file("tls.key")?,
            authorities: file("ca.crt").ok().and_then(|text| String::from_utf8(text).ok()),
        })
    };
    let (first, second): (Contents, Contents) = (all()?, all()?);
    if first != second {
        return Err(ApiError::Conflict(format!("the files in {} are being replaced", folder.display())));
    }
    Ok(second)
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
