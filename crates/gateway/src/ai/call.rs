//! One call of a model: what is reserved for it, and what became of it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures_util::future::select_all;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use watchkeeper_ai::{
    Amounts, ApiError, Dialect, ErrorKind, Ledger, Limit, Money, Prices, Reservation, Unit, Usage,
};
use watchkeeper_core::Key;

use super::cache::Slot;
use super::clock::now;
use super::content::Content;
use super::guard::UNAVAILABLE;
use super::records::{Record, Records};
use super::share::{Budget, Owner, Refused, Share};
use super::spent::Known;
use super::stats::{Lost, Stats};
use super::table::{AiKey, Tenant};

/// What all calls share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) records: Option<Records>,
    pub(crate) stats: Stats,
    /// Whether it is known what budgets were charged with before the start.
    pub(crate) spent: Known,
    /// What budgets are leased from, if replicas share them.
    pub(crate) share: Option<Share>,
}

impl Shared {
    /// Adds what is counted to the page of metrics.
    pub(crate) fn write_metrics(&self, text: &mut String) {
        let leases = self.share.as_ref().map_or((0, 0), Share::counted);
        let records = Lost {
            records: self.records.as_ref().map_or(0, Records::lost),
            database: self.records.as_ref().and_then(Records::in_database),
        };
        self.stats.write(text, &records, leases);
    }
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
    /// Of the subscription.
    pub(super) revocation: Option<Revocation>,
    /// Where the answer is to be kept.
    pub(super) slot: Option<Slot>,
    /// Whether the answer is one that was given before.
    pub(super) is_cached: bool,
    /// What of it is kept in its record.
    pub(super) content: Option<Content>,
    pub(super) dialect: Dialect,
    /// What the client speaks, as records name it.
    pub(super) protocol: &'static str,
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
    /// How much is reserved, also where nobody limits it.
    wanted: Option<Amounts>,
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

/// Cancelled when the subscription of a request is revoked and its streams are to be cut.
#[derive(Clone)]
pub(crate) struct Revocation(pub(crate) CancellationToken);

/// A future that ends when a call is to be cut, and says why.
pub(super) type Cut = Pin<Box<dyn Future<Output = ApiError> + Send>>;

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
            revocation: None,
            slot: None,
            is_cached: false,
            content: None,
            dialect,
            protocol: dialect.name(),
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
            wanted: None,
            lost: Amounts::default(),
            outcome: Outcome::Unsent,
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Keeps the request for the record, if the policy of the key says so and there are records.
    pub(super) fn keep_content(&mut self, request: &Bytes) {
        if self.shared.records.is_some() {
            let log = self.key.as_ref().and_then(|key| key.policy.content.as_ref());
            self.content = log.map(|log| Content::of(log, request));
        }
    }

    /// Takes note of what the model says at a place of its answer, if that is kept.
    pub(super) fn said(&mut self, place: usize, text: &str) {
        if let Some(content) = &mut self.content {
            content.said(place, text);
        }
    }

    /// Whether it is to be told what the model says.
    pub(super) fn wants_response(&self) -> bool {
        self.content.as_ref().is_some_and(Content::wants_response)
    }

    /// Reserves of all budgets of the key what the call may use.
    pub(super) async fn reserve(&mut self, usage: &Usage) -> Result<(), ApiError> {
        if self.limits().next().is_some() {
            self.shared.spent.wait().await?;
        }
        let (key, tenant) = (self.key.clone(), self.tenant.clone());
        let most = self.prices.map_or(0, |prices| prices.most(usage).0);
        let wanted = Amounts { requests: 1, tokens: usage.total(), money: most };
        // Also without limits: one that comes later counts what was used before it.
        let mut budgets: Vec<(Budget<'_>, &str)> = Vec::new();
        if let Some(key) = &key {
            let policy = &key.policy;
            let object = Key::new(policy.key.namespace(), &format!("policy-{}", policy.key.name()));
            let owner = Owner { object: object.clone(), key: Arc::clone(&key.name) };
            budgets.push((Budget { owner, ledger: &key.ledger, limits: &policy.key_limits }, "this key"));
            let owner = Owner { object, key: "".into() };
            let all = Budget { owner, ledger: &policy.ledger, limits: &policy.limits };
            budgets.push((all, "all keys of the policy"));
        }
        if let Some(tenant) = &tenant {
            let owner = Owner { object: Key::new(tenant.key.namespace(), "tenant"), key: "".into() };
            let all = Budget { owner, ledger: &tenant.ledger, limits: &tenant.limits };
            budgets.push((all, "all keys of the tenant"));
        }
        for (budget, whose) in budgets {
            let reserved = match &self.shared.share {
                Some(share) => share.reserve(&budget, wanted).await,
                None => {
                    let reserved = budget.ledger.lock().reserve(now(), budget.limits, wanted);
                    reserved.map_err(Refused::Exceeded)
                }
            };
            match reserved {
                Ok(reservation) => self.reserved.push((Arc::clone(budget.ledger), reservation)),
                Err(refused) => {
                    for (ledger, reservation) in self.reserved.drain(..) {
                        ledger.lock().release(reservation);
                    }
                    return Err(limited(&refused, whose));
                }
            }
        }
        self.wanted = Some(wanted);
        Ok(())
    }

    /// Waits until the call is to be cut: its key or its subscription is revoked, or its tenant suspended.
    pub(super) fn cut(&self) -> Cut {
        let unauthenticated = |message| ApiError::new(ErrorKind::Unauthenticated, message);
        let key = self.key.as_ref().map(|key| (key.revoked.clone(), unauthenticated("the key was revoked")));
        let tenant = self.tenant.as_ref().map(|tenant| {
            (tenant.cut.clone(), ApiError::new(ErrorKind::Forbidden, "the tenant was suspended"))
        });
        let subscription = self
            .revocation
            .as_ref()
            .map(|revocation| (revocation.0.clone(), unauthenticated("the subscription was revoked")));
        let cuts = [key, tenant, subscription].into_iter().flatten().map(|(token, error)| {
            Box::pin(async move {
                token.cancelled().await;
                error
            })
        });
        let cuts: Vec<_> = cuts.collect();
        match cuts.is_empty() {
            true => Box::pin(std::future::pending()),
            false => Box::pin(async move { select_all(cuts).await.0 }),
        }
    }

    /// All limits of the call.
    fn limits(&self) -> impl Iterator<Item = &Limit> {
        let key = self.key.as_ref().map(|key| key.policy.key_limits.iter().chain(&key.policy.limits));
        let tenant = self.tenant.as_ref().map(|tenant| tenant.limits.iter());
        key.into_iter().flatten().chain(tenant.into_iter().flatten())
    }

    /// Whether tokens or money are limited.
    pub(super) fn is_budgeted(&self) -> bool {
        self.limits().any(|limit| limit.unit != Unit::Requests)
    }

    /// Whether money is limited.
    pub(super) fn limits_cost(&self) -> bool {
        self.limits().any(|limit| limit.unit == Unit::Money)
    }

    /// Notes that the call is sent to a provider, for the first time or again. What became of an attempt before that nobody knows of counts as used, and
    /// has to be reserved once more.
    pub(super) async fn sending(&mut self, provider: &Arc<str>, usage: &Usage) -> Result<(), ApiError> {
        self.attempts += 1;
        self.provider = Some(Arc::clone(provider));
        if self.outcome == Outcome::Unknown {
            let lost = self.settle();
            self.lost = self.lost.plus(lost);
            // It says nothing of the next attempt.
            self.usage = None;
        }
        if self.wanted.is_none() {
            self.outcome = Outcome::Unsent;
            self.reserve(usage).await?;
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
        self.error = Some(if error.code == Some(UNAVAILABLE) { "guardrail" } else { word(error.kind) });
        if self.status == 0 {
            self.status = error.status();
        }
    }

    /// Settles all reservations. Says what is charged.
    fn settle(&mut self) -> Amounts {
        let Some(wanted) = self.wanted.take() else { return Amounts::default() };
        let used = match (&self.usage, self.outcome) {
            (Some(usage), _) => amounts(usage, self.prices.as_ref()),
            (None, Outcome::Unsent) => Amounts::default(),
            (None, Outcome::Refused) => Amounts { requests: 1, ..Amounts::default() },
            (None, Outcome::Unknown) => wanted,
        };
        for (ledger, reservation) in self.reserved.drain(..) {
            ledger.lock().settle(reservation, used);
        }
        used
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
            dialect: self.protocol,
            stream: self.stream,
            status: self.status,
            error: self.error.or((!self.is_complete).then_some("client_gone")),
            usage: self.usage,
            cost,
            charged,
            duration: self.begin.elapsed(),
            first_token: self.first,
            attempts: self.attempts,
            is_cached: self.is_cached,
            content: self.content.take(),
        };
        self.shared.stats.ended(&record);
        if let Some(records) = &self.shared.records {
            records.write(record);
        }
    }
}

fn amounts(usage: &Usage, prices: Option<&Prices>) -> Amounts {
    Amounts { requests: 1, tokens: usage.total(), money: prices.map_or(0, |prices| prices.cost(usage).0) }
}

fn limited(refused: &Refused, whose: &str) -> ApiError {
    match refused {
        Refused::Exceeded(exceeded) => {
            let message = format!("{whose}: {exceeded}");
            let mut error = ApiError::new(ErrorKind::Limited, message).code("insufficient_quota");
            error.retry_after = Some(exceeded.wait.max(1));
            error
        }
        Refused::Unavailable => {
            let message = format!(
                "{whose}: what this gateway may spend of the budget is spent, and more cannot be leased now; try again, and see the log of the gateway"
            );
            let mut error = ApiError::new(ErrorKind::Unavailable, message).code("budget_unavailable");
            error.retry_after = Some(1);
            error
        }
    }
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
