//! A prefix to which everything is being written from elsewhere: no server may be started on it before all of it is there.

use watchkeeper_etcd::{Client, Keys, Range};

use super::unavailable;
use crate::Error;

/// Marks such a prefix. Beside it, not under it: the mark is not mirrored.
pub(crate) fn importing_key(prefix: &str) -> String {
    format!("{prefix}:importing")
}

/// Refuses a prefix to which somebody has not written everything yet.
pub(crate) async fn check_complete(client: &Client, prefix: &str) -> Result<(), Error> {
    match exists(client, Keys::one(importing_key(prefix.trim_end_matches('/')))).await? {
        true => Err(Error::Invalid(format!(
            "an import into {prefix} of this etcd has not ended: wait for it, or run it again if it was interrupted"
        ))),
        false => Ok(()),
    }
}

/// Whether there are such keys.
pub(crate) async fn exists(client: &Client, keys: Keys) -> Result<bool, Error> {
    let found = client.range(&Range::of(keys).count_only()).await.map_err(|error| unavailable(&error))?;
    Ok(found.count > 0)
}
