use watchkeeper_core::SourceGauge;

/// Figures of a [`Postgres`](super::Postgres) source: of the feed that was opened last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Changes that were found without a notification. Stays 0 unless notifications get lost, as with a trigger that is disabled, or
    /// changes are not published.
    pub drift: u64,
    /// Snapshots that were begun.
    pub snapshots: u64,
    /// Row changes in the log.
    pub changes: u64,
    /// The lag, in bytes of the log, of the confirmed position behind the end of the log: the server keeps at least this
    /// much of its log for us. A [gauge](watchkeeper_core::Source::gauges), as the figures of the slot are.
    pub lag_bytes: u64,
    /// The slot as the server reports it, read every [`rescan`](super::Postgres::rescan).
    pub slot: Option<Slot>,
}

/// A replication slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot {
    /// The name of the slot.
    pub name: String,
    /// Bytes of the log that the slot retains.
    pub retained_bytes: u64,
    /// Bytes that may still be written before the slot is invalidated; `None` if there is no limit, so that the disk may fill up.
    pub safe_bytes: Option<u64>,
    /// `reserved`, `extended`, `unreserved` or `lost`.
    pub wal_status: String,
}

impl Figures {
    /// These figures as metrics of a source.
    pub(super) fn gauges(&self, source: &str) -> Vec<SourceGauge> {
        let gauge = |name, help, value: u64| SourceGauge::new(source, name, help, value as f64);
        let mut gauges = vec![gauge(
            "replication_lag_bytes",
            "Bytes of the log that are written and not confirmed",
            self.lag_bytes,
        )];
        if let Some(slot) = &self.slot {
            gauges.push(gauge(
                "slot_retained_bytes",
                "Bytes of the log that the slot keeps",
                slot.retained_bytes,
            ));
            gauges.push(gauge(
                "slot_wal_status",
                "State of the slot: 0 reserved, 1 extended, 2 unreserved, 3 lost",
                slot.severity(),
            ));
            gauges.extend(slot.safe_bytes.map(|bytes| {
                gauge("slot_safe_bytes", "Bytes that may be written before the slot is invalidated", bytes)
            }));
        }
        gauges
    }
}

impl Slot {
    /// How bad its `wal_status` is.
    fn severity(&self) -> u64 {
        match &*self.wal_status {
            "reserved" => 0,
            "extended" => 1,
            "unreserved" => 2,
            _ => 3,
        }
    }

    /// What is to be done where nothing limits how much of the log it keeps.
    pub(super) fn warning(&self) -> Option<String> {
        (self.safe_bytes.is_none() && self.severity() < 2).then(|| {
            format!(
                "the slot {} keeps the log of the server without a limit while nobody reads it, until the disk is full: \
                 ALTER SYSTEM SET max_slot_wal_keep_size = '10GB', and SELECT pg_reload_conf()",
                self.name
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_without_a_limit_is_warned_of_and_one_with_a_limit_or_that_is_lost_is_not() {
        let slot = |safe_bytes, status: &str| Slot {
            name: "orders".into(),
            retained_bytes: 1,
            safe_bytes,
            wal_status: status.into(),
        };
        let warning = slot(None, "reserved").warning().unwrap();
        assert!(warning.contains("orders") && warning.contains("max_slot_wal_keep_size"), "{warning}");
        assert_eq!(slot(Some(5), "reserved").warning(), None);
        assert_eq!(slot(None, "lost").warning(), None);
    }
}
