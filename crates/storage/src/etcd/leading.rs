//! Which of the servers that share a prefix does what only one should do.
//!
//! A key that goes with a lease: whoever puts it first leads for as long as the lease is kept alive. Whoever does not renew it in time
//! steps back before it runs out.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use watchkeeper_etcd::{Client, Compare, Error, Put, Txn};

/// How long others wait for a leader that does not answer any more, in seconds.
const TERM: i64 = 15;

/// How long a leader tries to renew its lease before it steps back. Less than the term, whatever etcd takes to notice.
const RENEW_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the lease is renewed, and how often others try to take the lead.
const INTERVAL: Duration = Duration::from_secs(3);

/// The key of whoever leads. Beside the prefix, not under it: it is not mirrored.
pub(crate) fn key(prefix: &str) -> String {
    format!("{prefix}:leader")
}

/// Leads from time to time, until the storage is closed or this process retires.
pub(super) async fn run(
    client: Client,
    prefix: Arc<str>,
    leading: Arc<watch::Sender<bool>>,
    mut retiring: watch::Receiver<bool>,
) {
    let key = key(&prefix);
    let _end = StepsBack(&leading);
    loop {
        match lead(&client, &key, &leading, &mut retiring).await {
            Ok(()) => {}
            Err(error) => tracing::debug!(%error, "not leading"),
        }
        step_back(&leading);
        tokio::select! {
            _ = retiring.wait_for(|retiring| *retiring) => return,
            () = sleep(INTERVAL.mul_f64(0.5 + fastrand::f64() / 2.0)) => {}
        }
    }
}

fn step_back(leading: &watch::Sender<bool>) {
    leading.send_if_modified(std::mem::take);
}

/// Whoever does not renew its lease any more does not lead, also after a panic.
struct StepsBack<'a>(&'a watch::Sender<bool>);

impl Drop for StepsBack<'_> {
    fn drop(&mut self) {
        step_back(self.0);
    }
}

/// Takes the lead if nobody has it, and keeps it for as long as that is possible.
async fn lead(
    client: &Client,
    key: &str,
    leading: &watch::Sender<bool>,
    retiring: &mut watch::Receiver<bool>,
) -> Result<(), Error> {
    let begun = Instant::now();
    let lease = client.lease_grant(TERM).await?;
    let campaign = Txn::new().when(Compare::absent(key)).then(Put::new(key, "").lease(lease.id));
    let won = client.txn(&campaign).await.map(|done| done.succeeded);
    if !matches!(won, Ok(true)) {
        // If it cannot be revoked, it runs out.
        let _ = client.lease_revoke(lease.id).await;
        return won.map(drop);
    }
    tracing::info!("this server takes the lead");
    leading.send_replace(true);
    let mut renewed = begun;
    let mut stream = None;
    loop {
        let retires = tokio::select! {
            _ = retiring.wait_for(|retiring| *retiring) => true,
            () = sleep(INTERVAL) => false,
        };
        if retires {
            // If it cannot be revoked, it runs out.
            let _ = client.lease_revoke(lease.id).await;
            return Ok(());
        }
        let renewing = async {
            let open = match stream.take() {
                Some(open) => open,
                None => client.keep_alive().await?,
            };
            let mut open = open;
            let asked = Instant::now();
            open.renew(lease.id).await?;
            Ok::<_, Error>((open, asked))
        };
        match timeout_at(renewed + RENEW_TIMEOUT, renewing).await {
            Ok(Ok((open, asked))) => (stream, renewed) = (Some(open), asked),
            Ok(Err(error @ Error::Refused { .. })) => return Err(error),
            Ok(Err(_)) if Instant::now() < renewed + RENEW_TIMEOUT => {}
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(Error::Unavailable("the lease could not be renewed".into())),
        }
    }
}
