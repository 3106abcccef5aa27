use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use watchkeeper_front::ServerCertificate;

use super::status::{ShownCertificate, Status};
use crate::api::{Api, ApiError};
use crate::configuration::Configuration;

/// How often the files are read again. A volume with a Secret is a minute behind it anyway.
const INTERVAL: Duration = Duration::from_secs(5);
/// How soon to look again at what should be and is not.
const SOON: Duration = Duration::from_millis(500);
/// How long configurations have to show a new authority before its certificate is shown, and how long the old one stays.
const SETTLE: Duration = Duration::from_secs(10);
const OVERLAP: Duration = Duration::from_secs(3600);

/// Shows a certificate that somebody else keeps in files, and has configurations believe it first.
pub(crate) struct FilesKeeper {
    pub(crate) api: Api,
    pub(crate) folder: PathBuf,
    pub(crate) configurations: Vec<Configuration>,
    pub(crate) certificate: ShownCertificate,
    pub(crate) status: Status,
    pub(crate) published: Option<oneshot::Sender<()>>,
}

/// What the files have.
#[derive(Clone, PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    /// None leaves bundles to somebody else.
    authorities: Option<String>,
}

impl FilesKeeper {
    pub(crate) async fn run(&mut self, stop: CancellationToken) {
        let mut shown: Option<Contents> = None;
        let mut old: Option<(String, Instant)> = None;
        let mut starting = true;
        loop {
            let turn = async {
                let new = read(&self.folder)?;
                let certificate = ServerCertificate::from_pem(&new.certificate, &new.key);
                let certificate = certificate.map_err(|error| ApiError::Other(error.to_string()))?;
                if let Some(before) = shown.as_ref().filter(|before| before.authorities != new.authorities) {
                    old = before.authorities.clone().map(|bundle| (bundle, Instant::now()));
                }
                let old = old.as_ref().filter(|(_, since)| since.elapsed() < OVERLAP);
                let bundle = new.authorities.as_ref().map(|new| match old {
                    Some((old, _)) => format!("{}\n{old}", new.trim_end()),
                    None => new.clone(),
                });
                let changed = self.publish(bundle.as_deref(), starting).await?;
                if shown.as_ref() != Some(&new) {
                    if shown.is_some() && changed {
                        sleep(SETTLE).await;
                    }
                    self.certificate.set(certificate);
                    shown = Some(new);
                }
                Ok::<(), ApiError>(())
            };
            let turn = tokio::select! {
                () = stop.cancelled() => return,
                turn = turn => turn,
            };
            starting = starting && turn.is_err();
            let pause = if turn.is_ok() { INTERVAL } else { SOON };
            // One that is not in force at once is no failure to be waited for.
            if !matches!(turn, Err(ApiError::Conflict(_))) {
                drop(self.published.take());
            }
            self.status.set(turn.map_err(|error| error.to_string()));
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// Has all configurations show these authorities. Says whether one of them did not.
    async fn publish(&self, bundle: Option<&str>, starting: bool) -> Result<bool, ApiError> {
        let mut changed = false;
        for configuration in &self.configurations {
            let path = configuration.path();
            let live = self.api.get(&path).await?;
            if let Some(why) = configuration.missing().filter(|_| live.is_none()) {
                return Err(ApiError::Other(why));
            }
            let shown = live.as_ref().map(|live: &Value| configuration.shown(live));
            let is_served = shown.as_ref().is_some_and(|shown| shown.in_force);
            let is_right = shown.as_ref().is_some_and(|shown| {
                bundle.is_none_or(|bundle| shown.bundle == bundle)
                    && (shown.is_ours || !starting)
                    && !shown.has_drifted
            });
            if is_right && !is_served {
                return Err(ApiError::Conflict(format!("{path} is not in force yet")));
            }
            if !is_right {
                changed = true;
                let mut object = match (&live, shown) {
                    (Some(live), Some(shown)) if !shown.is_ours && !starting => {
                        configuration.rebundled(live, bundle, 0)
                    }
                    _ => configuration.object(bundle, 0),
                };
                match live.is_some_and(|live| configuration.remove_other_way(&live, &mut object)) {
                    true => self.api.merge(&path, &object).await?,
                    false => self.api.apply(&path, &object).await?,
                }
                let live = self.api.get(&path).await?;
                if live.is_none_or(|live| !configuration.shown(&live).in_force) {
                    return Err(ApiError::Conflict(format!("{path} is not in force yet")));
                }
            }
        }
        Ok(changed)
    }
}

fn read(folder: &Path) -> Result<Contents, ApiError> {
    let file = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| ApiError::Other(format!("{}: {error}", path.display())))
    };
    Ok(Contents {
        certificate: file("tls.crt")?,
        key: file("tls.key")?,
        authorities: file("ca.crt").ok().and_then(|text| String::from_utf8(text).ok()),
    })
}
