use watchkeeper_etcd::{
    Client, Compare, Delete, Error as EtcdError, Keys, Operation as EtcdOperation, Put, Txn,
};

use super::Snapshot;
use crate::etcd::{Layout, check_complete, exists, importing_key, leader_key, refused, snapshot};
use crate::{Error, Progress};

/// So many keys are written at a time; etcd takes 128 unless it is told otherwise.
const MOST_KEYS: usize = 100;

/// So many bytes are written at a time, unless one value has more; etcd takes 1.5 MiB unless it is told otherwise.
const MOST_BYTES: usize = 1 << 20;

impl Snapshot {
    /// Reads everything under a prefix of an etcd cluster, at one revision, also while servers write there.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if etcd does not answer, [`Error::Invalid`] if what is under the prefix was not written by us, or was not all
    /// written.
    pub async fn of_etcd(
        client: &Client,
        prefix: &str,
        layout: &Layout,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        check_complete(client, prefix).await?;
        Ok(Self { tree: snapshot(client, prefix, layout, progress).await? })
    }

    /// Writes everything to a prefix of an etcd cluster under which there is nothing, and reads it back. Every entry gets a new revision.
    ///
    /// Until all of it is there, no server can be started on the prefix. If this is interrupted, it is begun anew when it is called again.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if there is something under the prefix, or a server uses it. [`Error::TooLarge`] names a key whose value etcd does
    /// not take. [`Error::Full`], [`Error::Unavailable`] and [`Error::Unknown`] as of a commit; calling it again is safe.
    pub async fn to_etcd(&self, client: &Client, prefix: &str, progress: Progress<'_>) -> Result<(), Error> {
        let prefix = prefix.trim_end_matches('/');
        self.begin_import(client, prefix).await?;
        let mut entries: Vec<_> = self.entries().collect();
        entries.sort_by_key(|entry| entry.modified);
        let (mut put, mut bytes, mut keys) = (Vec::new(), 0, Vec::new());
        for (number, entry) in entries.iter().enumerate() {
            put.push(Put::new(format!("{prefix}{}", entry.key), entry.value.to_vec()));
            keys.push(&*entry.key);
            bytes += entry.key.len() + entry.value.len();
            let next = entries.get(number + 1).map_or(0, |next| next.key.len() + next.value.len());
            if put.len() == MOST_KEYS || bytes + next > MOST_BYTES || number + 1 == entries.len() {
                write(client, std::mem::take(&mut put)).await.map_err(|error| naming(error, &keys))?;
                bytes = 0;
                keys.clear();
                progress(number + 1);
            }
        }
        self.check_import(client, prefix).await?;
        let end = Delete::of(Keys::one(importing_key(prefix)));
        client.delete(&end).await.map_err(|error| refused(&error))?;
        Ok(())
    }

    /// Claims the prefix, and removes what an import has left that was interrupted.
    async fn begin_import(&self, client: &Client, prefix: &str) -> Result<(), Error> {
        let marker = importing_key(prefix);
        if exists(client, Keys::one(leader_key(prefix))).await? {
            return Err(Error::Invalid(format!(
                "a server uses {prefix}/ of this etcd, or did so a few seconds ago: stop it, or name another prefix"
            )));
        }
        let all = Keys::prefix(format!("{prefix}/"));
        if exists(client, Keys::one(marker.clone())).await? {
            tracing::warn!("an import that was interrupted is begun anew");
            client.delete(&Delete::of(all)).await.map_err(|error| refused(&error))?;
            return Ok(());
        }
        if exists(client, all).await? {
            return Err(Error::Invalid(format!(
                "there are keys under {prefix}/ of this etcd already: name another prefix, or delete them \
                 (etcdctl del --prefix {prefix}/)"
            )));
        }
        let claim = Txn::new().when(Compare::absent(marker.clone())).then(Put::new(marker, ""));
        match client.txn(&claim).await.map_err(|error| refused(&error))?.succeeded {
            true => Ok(()),
            false => Err(Error::Invalid(format!("somebody else imports into {prefix}/ at this moment"))),
        }
    }

    /// Compares what is there with what should be, but for revisions.
    async fn check_import(&self, client: &Client, prefix: &str) -> Result<(), Error> {
        let read = Self { tree: snapshot(client, prefix, &Layout::Own, &|_| ()).await? };
        let same = |(one, other): (&std::sync::Arc<crate::Entry>, &std::sync::Arc<crate::Entry>)| {
            one.key == other.key && one.value == other.value
        };
        match read.len() == self.len() && read.entries().zip(self.entries()).all(same) {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "what is under {prefix}/ is not what was written: somebody else writes there"
            ))),
        }
    }
}

/// Writes keys in one transaction. It may be repeated: the same values under the same keys.
async fn write(client: &Client, put: Vec<Put>) -> Result<(), Error> {
    let txn = put.into_iter().fold(Txn::new(), |txn, put| txn.then(EtcdOperation::from(put)));
    match client.txn(&txn).await {
        Err(EtcdError::Unknown(_)) => client.txn(&txn).await,
        done => done,
    }
    .map(drop)
    .map_err(|error| refused(&error))
}

/// Says which key is too large, if it is one alone.
fn naming(error: Error, keys: &[&str]) -> Error {
    match (error, keys) {
        (Error::TooLarge(reason), [key]) => {
            Error::TooLarge(format!("{key}: {reason}; raise --max-request-bytes of etcd"))
        }
        (error, _) => error,
    }
}
