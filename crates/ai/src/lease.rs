//! Budgets that several replicas share.
//!
//! What is left of a budget is handed out in slices: a replica *leases* one before it spends of it, and spends no more than it has leased. [`Leases`] is what
//! all replicas have leased of the budgets of a policy; it is an object that they change in turns.
//!
//! # What it promises
//!
//! - What all replicas together have leased of a period is at most the limit that held at the last lease. So replicas that spend no more than they have
//!   leased do not exceed it, however many there are, and whenever they end.
//! - A limit that is lowered is exceeded by at most what is leased and not spent at that moment: a slice for each replica.
//!
//! # What it does not promise
//!
//! That all of a limit can be spent. What a replica has leased and not given back when it is killed is lost until the period ends: at most a slice. A call may be
//! refused while others have slices that they do not need; they give them back when they have been idle.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::{Part, Period, Unit};

/// What part of what is left is leased at once: of short periods, and of days and months.
const SLICES: (u64, u64) = (8, 32);

/// What replicas have leased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leases(BTreeMap<(String, Period, Unit), (u64, u64)>);

/// A lease as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Whose budget: the name of a key; empty for all keys together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// In how long.
    pub per: String,
    /// In which period of this length, counted from 1970.
    pub period: u64,
    /// Of what.
    pub unit: String,
    /// How much; of money, in billionths.
    pub leased: u64,
}

impl Leases {
    /// Leases of a budget: what is lacking and, if there is more, a slice. Says how much; less than is lacking if that is all there is.
    pub fn lease(&mut self, owner: &str, lacking: Part, most: u64) -> u64 {
        let Part { unit, period, number, amount } = lacking;
        let entry = self.0.entry((owner.to_owned(), period, unit)).or_insert((number, 0));
        if entry.0 < number {
            *entry = (number, 0);
        }
        // A clock that is behind leases nothing of a period that is over for others.
        let left = if entry.0 == number { most.saturating_sub(entry.1) } else { 0 };
        let parts = if matches!(period, Period::Minute | Period::Hour) { SLICES.0 } else { SLICES.1 };
        let granted = (left / parts).max(amount).min(left);
        entry.1 = entry.1.saturating_add(granted);
        granted
    }

    /// Gives back what is not needed.
    pub fn give_back(&mut self, owner: &str, spare: Part) {
        if let Some((number, leased)) = self.0.get_mut(&(owner.to_owned(), spare.period, spare.unit))
            && *number == spare.number
        {
            *leased = leased.saturating_sub(spare.amount);
        }
    }

    /// Forgets periods that are over for everybody.
    pub fn forget(&mut self, now: u64) {
        self.0.retain(|(_, period, _), (number, _)| *number + 1 >= period.number(now));
    }

    /// The leases, to be written.
    pub fn to_list(&self) -> Vec<Lease> {
        let write = |((key, period, unit), (number, leased)): (&(String, Period, Unit), &(u64, u64))| Lease {
            key: key.clone(),
            per: format!("{period:?}"),
            period: *number,
            unit: format!("{unit:?}"),
            leased: *leased,
        };
        self.0.iter().map(write).collect()
    }

    /// Reads leases. Those of units and periods that are not known here are left out.
    pub fn from_list(list: &[Lease]) -> Self {
        let read = |lease: &Lease| {
            let period = Period::ALL.into_iter().find(|period| format!("{period:?}") == lease.per)?;
            let unit = Unit::ALL.into_iter().find(|unit| format!("{unit:?}") == lease.unit)?;
            Some(((lease.key.clone(), period, unit), (lease.period, lease.leased)))
        };
        Self(list.iter().filter_map(read).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::{Amounts, Ledger, Limit, Reservation, Shortage};

    const NOON: u64 = 1_700_000_000;

    #[derive(Clone, Debug)]
    enum Step {
        /// A replica wants to call.
        Call(usize, u64),
        /// A replica reads the leases, as of now; it writes them later, if nobody else has meanwhile.
        Read(usize, u64),
        /// It writes what it has read, changed.
        Write(usize),
        /// Both at once.
        Lease(usize, u64),
        /// A call ends, having used so much of what was reserved.
        Settle(usize, u64),
        GiveBack(usize),
        Kill(usize),
        Wait(u64),
        Edit(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let replica = 0_usize..3;
        prop_oneof![
            6 => (replica.clone(), 1_u64..40).prop_map(|(replica, amount)| Step::Call(replica, amount)),
            4 => (replica.clone(), 1_u64..40).prop_map(|(replica, amount)| Step::Read(replica, amount)),
            4 => replica.clone().prop_map(Step::Write),
            6 => (replica.clone(), 1_u64..40).prop_map(|(replica, amount)| Step::Lease(replica, amount)),
            3 => (any::<usize>(), 0_u64..40).prop_map(|(which, used)| Step::Settle(which, used)),
            1 => replica.clone().prop_map(Step::GiveBack),
            1 => replica.prop_map(Step::Kill),
            1 => (1_u64..30).prop_map(Step::Wait),
            1 => (40_u64..120).prop_map(Step::Edit),
        ]
    }

    /// What leases give.
    type Given = Vec<(Part, u64)>;

    #[derive(Default)]
    struct Replica {
        ledger: Ledger,
        /// The version that was read, the leases as they are to be written, and what they give.
        pending: Option<(u64, Leases, Given)>,
        calls: Vec<(Reservation, u64)>,
    }

    fn tokens(tokens: u64) -> Amounts {
        Amounts { requests: 1, tokens, money: 0 }
    }

    proptest! {
        /// Three replicas that die and come back, reads and writes in any order. What all of them have spent in a minute, the dead included, is at most the
        /// largest limit that held in it.
        #[test]
        fn replicas_together_never_exceed_a_limit(steps in prop::collection::vec(step(), 1..300)) {
            let mut shared = (0_u64, Leases::default());
            let mut replicas: Vec<Replica> = (0..3).map(|_| Replica::default()).collect();
            let (mut now, mut most) = (NOON, 60_u64);
            // By minute: what was spent or is reserved, and the largest limit.
            let mut spent: BTreeMap<u64, u64> = BTreeMap::new();
            let mut highest: BTreeMap<u64, u64> = BTreeMap::new();
            for step in steps {
                let limits = [Limit { unit: Unit::Tokens, period: Period::Minute, most }];
                let minute = now / 60;
                let high = highest.entry(minute).or_default();
                *high = (*high).max(most);
                match step {
                    Step::Call(at, amount) => {
                        let replica = &mut replicas[at];
                        match replica.ledger.reserve_leased(now, &limits, tokens(amount)) {
                            Ok(reservation) => {
                                *spent.entry(minute).or_default() += amount;
                                replica.calls.push((reservation, minute));
                            }
                            Err(Shortage::Exceeded(_) | Shortage::Unleased) => {}
                        }
                    }
                    Step::Read(at, amount) => {
                        let (version, mut leases) = shared.clone();
                        let lacks = replicas[at].ledger.lacks(now, &limits, tokens(amount));
                        let granted = lacks.iter().map(|(part, most)| (*part, leases.lease("k", *part, *most)));
                        let granted = granted.collect();
                        replicas[at].pending = Some((version, leases, granted));
                    }
                    Step::Write(at) => {
                        if let Some((version, leases, granted)) = replicas[at].pending.take()
                            && version == shared.0
                        {
                            shared = (version + 1, Leases::from_list(&leases.to_list()));
                            granted.into_iter().for_each(|(part, amount)| replicas[at].ledger.lease(now, part, amount));
                        }
                    }
                    Step::Lease(at, amount) => {
                        let ledger = &mut replicas[at].ledger;
                        for (part, most) in ledger.lacks(now, &limits, tokens(amount)) {
                            ledger.lease(now, part, shared.1.lease("k", part, most));
                        }
                        shared.0 += 1;
                    }
                    Step::Settle(which, used) => {
                        let at = which % 3;
                        if !replicas[at].calls.is_empty() {
                            let which = which % replicas[at].calls.len();
                            let (reservation, minute) = replicas[at].calls.swap_remove(which);
                            let reserved = reservation.amounts().tokens;
                            let used = used.min(reserved);
                            *spent.entry(minute).or_default() -= reserved - used;
                            replicas[at].ledger.settle(reservation, tokens(used));
                        }
                    }
                    Step::GiveBack(at) => {
                        let spare = replicas[at].ledger.take_spare(now);
                        spare.into_iter().for_each(|part| shared.1.give_back("k", part));
                        shared.0 += 1;
                    }
                    // What its calls had reserved may have been spent.
                    Step::Kill(at) => replicas[at] = Replica::default(),
                    Step::Wait(seconds) => now += seconds,
                    Step::Edit(limit) => most = limit,
                }
                for (minute, amount) in &spent {
                    prop_assert!(*amount <= highest[minute], "{} of {} in minute {}", amount, highest[minute], minute);
                }
            }
        }
    }

    #[test]
    fn all_of_a_limit_can_be_spent_if_nobody_dies() {
        let limits = [Limit { unit: Unit::Requests, period: Period::Month, most: 100 }];
        let (mut leases, mut ledgers) = (Leases::default(), [Ledger::default(), Ledger::default()]);
        let (mut served, mut now) = (0, NOON);
        loop {
            let before = served;
            for ledger in &mut ledgers {
                let mut tried = ledger.reserve_leased(now, &limits, tokens(1));
                if tried == Err(Shortage::Unleased) {
                    for (part, most) in ledger.lacks(now, &limits, tokens(1)) {
                        ledger.lease(now, part, leases.lease("", part, most));
                    }
                    tried = ledger.reserve_leased(now, &limits, tokens(1));
                }
                if let Ok(reservation) = tried {
                    served += 1;
                    ledger.keep(reservation);
                }
            }
            if served == before {
                break;
            }
            now += 2;
        }
        assert_eq!(served, 100);
        let written = leases.to_list();
        assert_eq!(Leases::from_list(&written), leases);
        assert_eq!(
            (written[0].per.as_str(), written[0].unit.as_str(), written[0].leased),
            ("Month", "Requests", 100)
        );
    }

    #[test]
    fn periods_that_are_over_are_forgotten() {
        let part =
            |now: u64| Part { unit: Unit::Tokens, period: Period::Minute, number: now / 60, amount: 10 };
        let mut leases = Leases::default();
        assert_eq!(leases.lease("a", part(NOON), 10), 10);
        assert_eq!(leases.lease("a", part(NOON), 10), 0);
        assert_eq!(leases.lease("a", part(NOON + 60), 10), 10, "the next minute");
        assert_eq!(leases.lease("a", part(NOON), 10), 0, "a clock that is behind");
        leases.forget(NOON + 600);
        assert_eq!(leases, Leases::default());
    }
}
