use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use watchkeeper_ai::Ledger;
use watchkeeper_core::Key;

/// So many may be there before those are looked for that nobody needs.
const FEW: usize = 1_024;

/// What keys and policies have used, whatever becomes of their objects: one that comes back in the same month goes on where it ended.
///
/// Kept are those in use and those that were used this month, and at most as many that are neither, or [`FEW`] of them.
#[derive(Default)]
pub(super) struct Ledgers {
    /// By policy, and name of the key; empty for all keys.
    by_owner: HashMap<(Key, String), Arc<Mutex<Ledger>>>,
    /// How many were left when they were looked through last.
    left: usize,
}

impl Ledgers {
    /// The ledger of an owner: the one that is known, or else what `make` makes.
    pub(super) fn get(
        &mut self,
        owner: (Key, String),
        now: u64,
        make: impl FnOnce() -> Ledger,
    ) -> Arc<Mutex<Ledger>> {
        if self.by_owner.len() > 2 * self.left.max(FEW / 2) {
            self.by_owner.retain(|_, ledger| Arc::strong_count(ledger) > 1 || !ledger.lock().is_over(now));
            self.left = self.by_owner.len();
        }
        Arc::clone(self.by_owner.entry(owner).or_insert_with(|| Arc::new(Mutex::new(make()))))
    }

    /// All that are known, with their owners, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&(Key, String), &Mutex<Ledger>)> {
        self.by_owner.iter().map(|(owner, ledger)| (owner, &**ledger))
    }
}

#[cfg(test)]
mod tests {
    use watchkeeper_ai::{Amounts, Period};

    use super::*;

    #[test]
    fn a_ledger_outlives_its_owner_until_its_month_is_over() {
        const MONTH: u64 = 32 * 86_400;
        let used = |now: u64| {
            let mut ledger = Ledger::default();
            ledger.restore(now, Period::Month, Amounts { requests: 7, ..Amounts::default() });
            ledger
        };
        let requests = |ledger: &Mutex<Ledger>, now: u64| ledger.lock().taken(now, Period::Month).0.requests;
        let owner = |name: String| (Key::new(Some("shop"), "keys"), name);
        let (mut ledgers, mut now) = (Ledgers::default(), 1_700_000_000);
        let held = ledgers.get(owner("held".into()), now, || used(now));
        for month in 0..20 {
            for number in 0..500 {
                ledgers.get(owner(format!("{month}-{number}")), now, || used(now));
            }
            let first = ledgers.get(owner(format!("{month}-0")), now, Ledger::default);
            assert_eq!(requests(&first, now), 7, "it was used this month");
            now += MONTH;
        }
        assert!(ledgers.by_owner.len() <= 2 * FEW, "{}", ledgers.by_owner.len());
        assert!(Arc::ptr_eq(&held, &ledgers.get(owner("held".into()), now, Ledger::default)));
    }
}
