//! One call of a model: what is reserved for it, and what became of it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use watchkeeper_ai::{
    Amounts, ApiError, Dialect, ErrorKind, Exceeded, Ledger, Limit, Money, Prices, Reservation, Usage,
};
use watchkeeper_core::Key;

use super::records::{Record, Records};
use super::stats::Stats;
use super::table::{AiKey, Tenant};

/// What all calls share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) records: Option<Records>,
    pub(crate) stats: Stats,
}

impl Shared {
    /// Adds what is counted to the page of metrics.
    pub(crate) fn write_metrics(&self, text: &mut String) {
        self.stats.write(text, self.records.as_ref().map_or(0, Records::lost));
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A call, from the moment its key is known. When it is dropped, at whatever point, budgets are settled, and it is recorded and counted.
pub(super) struct Call {
    shared: Arc<Shared>,
    begin: Instant,
    time: SystemTime,
    pub(super) id: String,
    pub(super) gateway: Key,
    pub(super) key: Option<Arc<AiKey>>,
    pub(super) tenant: Option<Arc<Tenant>>,
    pub(super) dialect: Dialect,
    pub(super) model: Arc<str>,
    pub(super) provider: Option<Arc<str>>,
    pub(super) prices: Option<Prices>,
    pub(super) stream: bool,
    /// The status code that the client gets; 0 if it left before there was one.
    pub(super) status: u16,
    /// What went wrong, in a word.
    pub(super) error: Option<&'static str>,
    pub(super) usage: Option<Usage>,
    /// Whether all of the answer was passed on.
    pub(super) is_complete: bool,
    first: Option<Duration>,
    attempts: u32,
    reserved: Vec<(Arc<Mutex<Ledger>>, Reservation)>,
    /// What attempts before the last are charged with.
    lost: Amounts,
    /// What of the reservation is to be done if nothing is known of usage.
    outcome: Outcome,
}

/// What is known of a call that has no usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was never sent.
    Unsent,
    /// The provider refused it: nothing was used.
    Refused,
    /// Nobody knows: all that was reserved counts as used.
    Unknown,
}

/// What was used, the limits of it, and whose they are.
type Budget<'a> = (&'a Arc<Mutex<Ledger>>, &'a [Limit], &'a str);

impl Call {
    pub(super) fn new(shared: Arc<Shared>, gateway: Key, dialect: Dialect, key: Option<Arc<AiKey>>) -> Self {
        Self {
            shared,
            begin: Instant::now(),
            time: SystemTime::now(),
            id: format!("{:016x}{:08x}", fastrand::u64(..), fastrand::u32(..)),
            gateway,
            key,
            tenant: None,
            dialect,
            model: "".into(),
            provider: None,
            prices: None,
            stream: false,
            status: 0,
            error: None,
            usage: None,
            is_complete: false,
            first: None,
            attempts: 0,
            reserved: Vec::new(),
            lost: Amounts::default(),
            outcome: Outcome::Unsent,
        }
    }

    /// Reserves of all budgets of the key what the call may use.
    pub(super) fn reserve(&mut self, usage: &Usage) -> Result<(), ApiError> {
        let (key, tenant) = (self.key.clone(), self.tenant.clone());
        let wanted = amounts(usage, self.prices.as_ref());
        // Also without limits: one that comes later counts what was used before it.
        let mut budgets: Vec<Budget<'_>> = Vec::with_capacity(3);
        if let Some(key) = &key {
            budgets.push((&key.ledger, &key.policy.key_limits, "this key"));
            budgets.push((&key.policy.ledger, &key.policy.limits, "all keys of the policy"));
        }
        if let Some(tenant) = &tenant {
            budgets.push((&tenant.ledger, &tenant.limits, "all keys of the tenant"));
        }
        for (ledger, limits, whose) in budgets {
            match ledger.lock().reserve(now(), limits, wanted) {
                Ok(reservation) => self.reserved.push((Arc::clone(ledger), reservation)),
                Err(exceeded) => {
                    for (ledger, reservation) in self.reserved.drain(..) {
                        ledger.lock().release(reservation);
                    }
                    return Err(limited(&exceeded, whose));
                }
            }
        }
        Ok(())
    }

    /// Notes that the call is sent to a provider, for the first time or again. What became of an attempt before that nobody knows of counts as used, and
    /// has to be reserved once more.
    pub(super) fn sending(&mut self, provider: &Arc<str>, usage: &Usage) -> Result<(), ApiError> {
        self.attempts += 1;
        self.provider = Some(Arc::clone(provider));
        if self.outcome == Outcome::Unknown {
            let lost = self.settle();
            self.lost = self.lost.plus(lost);
        }
        if self.reserved.is_empty() {
            self.outcome = Outcome::Unsent;
            self.reserve(usage)?;
        }
        self.outcome = Outcome::Unknown;
        Ok(())
    }

    pub(super) fn refused(&mut self) {
        self.outcome = Outcome::Refused;
    }

    /// Notes that nothing was sent after all.
    pub(super) fn unsent(&mut self) {
        self.outcome = Outcome::Unsent;
    }

    /// Notes that the model has begun to answer.
    pub(super) fn answering(&mut self) {
        if self.first.is_none() {
            self.first = Some(self.begin.elapsed());
        }
    }

    pub(super) fn used(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.usage = Some(self.usage.map_or(usage, |known| known.merged(usage)));
        }
    }

    pub(super) fn failed(&mut self, error: &ApiError) {
        self.error = Some(word(error.kind));
        if self.status == 0 {
            self.status = error.status();
        }
    }

    /// Settles all reservations. Says what is charged to the key.
    fn settle(&mut self) -> Amounts {
        let mut charged = Amounts::default();
        for (ledger, reservation) in self.reserved.drain(..) {
            let mut ledger = ledger.lock();
            let used = match (&self.usage, self.outcome) {
                (Some(usage), _) => amounts(usage, self.prices.as_ref()),
                (None, Outcome::Unsent) => Amounts::default(),
                (None, Outcome::Refused) => Amounts { requests: 1, ..Amounts::default() },
                (None, Outcome::Unknown) => reservation.amounts(),
            };
            ledger.settle(reservation, used);
            charged = used;
        }
        charged
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let settled = self.settle();
        let charged = self.lost.plus(settled);
        let cost = match (&self.usage, &self.prices) {
            (Some(usage), Some(prices)) => prices.cost(usage),
            _ => Money::default(),
        };
        let record = Record {
            time: self.time,
            id: std::mem::take(&mut self.id),
            gateway: self.gateway.clone(),
            policy: self.key.as_ref().map(|key| key.policy.key.clone()),
            key: self.key.as_ref().map(|key| Arc::clone(&key.name)),
            model: Arc::clone(&self.model),
            provider: self.provider.clone(),
            dialect: self.dialect.name(),
            stream: self.stream,
            status: self.status,
            error: self.error.or((!self.is_complete).then_some("client_gone")),
            usage: self.usage,
            cost,
            charged,
            duration: self.begin.elapsed(),
            first_token: self.first,
            attempts: self.attempts,
        };
        self.shared.stats.ended(&record);
        if let Some(records) = &self.shared.records {
            records.write(&record);
        }
    }
}

fn amounts(usage: &Usage, prices: Option<&Prices>) -> Amounts {
    Amounts { requests: 1, tokens: usage.total(), money: prices.map_or(0, |prices| prices.cost(usage).0) }
}

fn limited(exceeded: &Exceeded, whose: &str) -> ApiError {
    let mut error =
        ApiError::new(ErrorKind::Limited, format!("{whose}: {exceeded}")).code("insufficient_quota");
    error.retry_after = Some(exceeded.wait.max(1));
    error
}

/// An error in a word, for records.
fn word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "invalid",
        ErrorKind::Unauthenticated => "unauthenticated",
        ErrorKind::Forbidden => "forbidden",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Gone => "gone",
        ErrorKind::TooLarge => "too_large",
        ErrorKind::Limited => "limited",
        ErrorKind::Internal => "internal",
        ErrorKind::Provider => "provider",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Timeout => "timeout",
    }
}
