//! Writes the status of an object to a key beside it.

use watchkeeper_core::{Error, ObjectStatus};
use watchkeeper_etcd::{Compare, Keys, Outcome, Put, Range, Relation, Txn};

use super::settings::Settings;

/// Writes a status, if the object is still in the state that the status is about.
pub(super) async fn write(settings: &Settings, status: ObjectStatus) -> Result<(), Error> {
    let ObjectStatus { key, version, json, .. } = status;
    let name = &settings.name;
    let Some(status_key) = settings.status_key(&key) else {
        let hint = "say where with status_prefix or status_suffix";
        return Err(Error::Fatal(format!("{name}: the status of {key} cannot be written: {hint}")));
    };
    let revision =
        version.number().and_then(|number| i64::try_from(number).ok()).filter(|number| *number > 0);
    let Some(revision) = revision else {
        return Err(Error::Expired(format!("{name}: {key} has never had the version {version}")));
    };
    let object_key = settings.object_key(&key);
    let txn = Txn::new()
        .when(Compare::mod_revision(object_key.clone(), Relation::Equal, revision))
        .then(Put::new(status_key, json))
        .otherwise(Range::of(Keys::one(object_key)).keys_only());
    let client = settings.client.build().map_err(|error| settings.failure(error))?;
    let done = client.txn(&txn).await.map_err(|error| settings.failure(error))?;
    if done.succeeded {
        return Ok(());
    }
    match done.outcomes.first() {
        Some(Outcome::Range(found)) if found.kvs.is_empty() => {
            Err(Error::Missing(format!("{name}: {key} is gone")))
        }
        _ => Err(Error::Expired(format!("{name}: {key} has changed since {version}"))),
    }
}
