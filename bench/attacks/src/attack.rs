//! What an attack is.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{LocalBoxFuture, join_all};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use watchkeeper_bench_target::{Access, OpenFiles, Result};

use crate::attacks::{bodies, connections, documents, http2, requests, watches};

/// One attack on a server. It is bounded in time by itself, and sends to the loopback address only.
#[derive(Clone, Copy)]
pub(crate) struct Attack {
    /// What is done, for the table.
    pub(crate) name: &'static str,
    /// Who can do it.
    pub(crate) who: Who,
    /// How long it goes on.
    pub(crate) time: Duration,
    /// What the server holds before it begins.
    pub(crate) filled: Filled,
    /// How many files the server may have open.
    pub(crate) files: OpenFiles,
    /// Whether the innocent client also makes new connections all the time.
    pub(crate) fresh: bool,
    /// Bytes that each request that succeeds has stored, and that the server may hold in memory afterwards, in its history.
    pub(crate) stored: f64,
    /// The attack, in the process of the attacker.
    pub(crate) act: fn(Scene) -> LocalBoxFuture<'static, Result<Tally>>,
}

/// Who attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Without credentials.
    Stranger,
    /// With a token that allows no more than every token does.
    Authenticated,
    /// With all rights to custom resources and ConfigMaps of one namespace.
    Editor,
}

/// What a server holds before an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// One definition, and one object of its kind.
    Little,
    /// So many definitions.
    Definitions(usize),
    /// So many objects of so many bytes.
    Objects(usize, usize),
    /// So many versions of one object of 100 KB, so that the history which the server keeps anyway is full.
    History(usize),
}

/// What an attacker has: access, a place, and an end.
#[derive(Clone)]
pub(crate) struct Scene {
    /// The server, and who the attacker is to it.
    pub(crate) access: Arc<Access>,
    /// When the attack is over.
    pub(crate) end: Instant,
}

impl Attack {
    /// An attack on a server that holds little, with nothing to be stored.
    pub(crate) const fn new(
        name: &'static str,
        who: Who,
        act: fn(Scene) -> LocalBoxFuture<'static, Result<Tally>>,
    ) -> Self {
        let time = Duration::from_secs(8);
        let (filled, files) = (Filled::Little, OpenFiles::AsHere);
        Self { name, who, time, filled, files, fresh: false, stored: 0.0, act }
    }

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let families = [
            connections::ATTACKS,
            http2::ATTACKS,
            documents::ATTACKS,
            bodies::ATTACKS,
            watches::ATTACKS,
            requests::ATTACKS,
        ];
        families.into_iter().flatten().copied()
    }
}

impl Who {
    /// For the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stranger => "anonymous",
            Self::Authenticated => "any authenticated",
            Self::Editor => "editor of a namespace",
        }
    }
}

impl Scene {
    /// Whether there is time left.
    pub(crate) fn goes_on(&self) -> bool {
        Instant::now() < self.end
    }

    /// Does something until it is done, or the attack is over.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.end, work).await.ok()
    }

    /// Has several attackers repeat something until the attack is over, and adds up what they got. Each waits a little after a
    /// failure, such as a connection that is not accepted.
    pub(crate) async fn repeat(
        &self,
        attackers: usize,
        work: impl AsyncFn(usize, &mut Tally) -> Result<()>,
    ) -> Tally {
        let tallies = join_all((0..attackers).map(async |number| {
            let mut tally = Tally::default();
            while self.goes_on() {
                match self.within(work(number, &mut tally)).await {
                    Some(Ok(())) | None => {}
                    Some(Err(_)) => {
                        tally.count("failed");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
            tally
        }))
        .await;
        tallies.into_iter().fold(Tally::default(), Tally::and)
    }
}

/// What came of an attack, counted by what it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally(BTreeMap<String, u64>);

impl Tally {
    /// One more.
    pub(crate) fn count(&mut self, what: impl ToString) {
        *self.0.entry(what.to_string()).or_default() += 1;
    }

    /// Both together.
    pub(crate) fn and(mut self, other: Self) -> Self {
        for (what, count) in other.0 {
            *self.0.entry(what).or_default() += count;
        }
        self
    }

    /// How many requests were answered with 200 or 201.
    pub(crate) fn successes(&self) -> u64 {
        ["200", "201"].iter().filter_map(|status| self.0.get(*status)).sum()
    }

    /// In words.
    pub(crate) fn shown(&self) -> String {
        self.0.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_attacks_have_the_same_name() {
        let mut names: Vec<_> = Attack::all().map(|attack| attack.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn tallies_are_added_up_by_name() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        one.count("200");
        other.count("200");
        other.count("429");
        let both = one.and(other);
        assert_eq!((both.shown().as_str(), both.successes()), ("2 200, 1 429", 2));
    }
}
