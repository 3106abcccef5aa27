//! The cluster IPs and node ports of Services, which no two of them share.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use watchkeeper_storage::{Commit, Committed, Error, Revision};

use super::Writer;
use crate::resource::Resource;

/// The cluster IPs of a Service as numbers, and its node ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holdings {
    pub(crate) addresses: BTreeSet<u32>,
    pub(crate) ports: BTreeSet<u32>,
}

impl Holdings {
    /// Reads what a Service has. Addresses other than those of IPv4 are not given by this server, and not kept track of.
    pub(crate) fn of(service: &Value) -> Self {
        let spec = &service["spec"];
        if spec["type"] == "ExternalName" {
            return Self::default();
        }
        let addresses = spec["clusterIPs"].as_array().into_iter().flatten().chain([&spec["clusterIP"]]);
        let addresses = addresses.filter_map(|address| address.as_str()?.parse::<Ipv4Addr>().ok());
        let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
        let ports = ports.chain([&spec["healthCheckNodePort"]]).filter_map(Value::as_u64);
        Self {
            addresses: addresses.map(Ipv4Addr::to_bits).collect(),
            ports: ports.filter(|port| *port != 0).filter_map(|port| u32::try_from(port).ok()).collect(),
        }
    }
}

/// What the keys of all claims begin with.
const CLAIMS: &str = "/claims/";

/// Whether a key of the storage is a claim on an address or a port. Servers that share a storage make claims so that they do not give away
/// the same number at the same moment; who has which is said by the Services, so that claims need not be taken along to another storage.
pub(crate) fn is_claim(key: &str) -> bool {
    key.starts_with(CLAIMS)
}

impl Holdings {
    /// The keys that stand for these numbers. No resource is stored there.
    fn claims(&self) -> Vec<String> {
        let addresses = self.addresses.iter().map(|address| Ipv4Addr::from_bits(*address));
        let addresses = addresses.map(|address| format!("{CLAIMS}addresses/{address}"));
        addresses.chain(self.ports.iter().map(|port| format!("{CLAIMS}ports/{port}"))).collect()
    }
}

/// Which Service has which cluster IP and which node ports, in memory.
///
/// It is filled from the storage when the server starts and follows it from then on. What this server itself writes is in
/// force when the writer hears of it: an address that was given away is taken, and one that was given back is free.
///
/// A writer holds what it wants to give to a Service by a [`Reservation`]. Of several that ask for the same address, one gets
/// it. The lock is held for a few lines, never across an await, and no operation depends on how many Services there are.
///
/// Servers that share a storage do not see each other's reservations. There, a number that is given away is also claimed: by a key that
/// comes and goes in the commit that writes the Service, and that two commits cannot both bring.
#[derive(Clone)]
pub(crate) struct Allocator(Arc<Mutex<State>>);

struct State {
    addresses: Pool,
    ports: Pool,
    /// What the stored Services have, by key.
    stored: HashMap<Box<str>, Stored>,
    /// Everything that was written up to this revision is in `stored`. Of the next one, some of it may be.
    followed: Revision,
}

/// What a Service has since a revision. One that was deleted here and not yet by the follower has nothing.
struct Stored {
    holdings: Holdings,
    revision: Revision,
}

/// A range of numbers, and how many hold each of them: Services, reservations.
struct Pool {
    range: Range<u32>,
    /// Where numbers are looked for first that nobody asks for by name. Those before are left for those who do.
    dynamic: u32,
    holders: HashMap<u32, u32>,
}

/// Why a number was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    OutOfRange,
    Taken,
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfRange => "not in the range",
            Self::Taken => "already allocated",
            Self::Full => "range is full",
        })
    }
}

impl Pool {
    fn new(range: Range<u32>, reserved: u32) -> Self {
        let dynamic = range.start.saturating_add(reserved).min(range.end);
        Self { range, dynamic, holders: HashMap::new() }
    }

    fn is_free(&self, number: u32) -> bool {
        !self.holders.contains_key(&number)
    }

    fn hold(&mut self, number: u32) {
        let holders = self.holders.entry(number).or_default();
        *holders = holders.saturating_add(1);
    }

    fn release(&mut self, number: u32) {
        if let Some(holders) = self.holders.get_mut(&number) {
            *holders = holders.saturating_sub(1);
            if *holders == 0 {
                self.holders.remove(&number);
            }
        }
    }

    /// Some number that is free, and not among these.
    fn any(&self, own: &BTreeSet<u32>) -> Option<u32> {
        let (first, last) = (self.range.start, self.range.end);
        let start = if self.dynamic < last { fastrand::u32(self.dynamic..last) } else { last };
        let mut candidates = (start..last).chain(self.dynamic..start).chain(first..self.dynamic);
        candidates.find(|number| self.is_free(*number) && !own.contains(number))
    }
}

impl State {
    fn hold(&mut self, holdings: &Holdings) {
        holdings.addresses.iter().for_each(|address| self.addresses.hold(*address));
        holdings.ports.iter().for_each(|port| self.ports.hold(*port));
    }

    fn release(&mut self, holdings: &Holdings) {
        holdings.addresses.iter().for_each(|address| self.addresses.release(*address));
        holdings.ports.iter().for_each(|port| self.ports.release(*port));
    }

    /// Whether what was written under a key at a revision is known, or something later is.
    fn knows(&self, key: &str, revision: Revision) -> bool {
        revision <= self.followed || self.stored.get(key).is_some_and(|stored| stored.revision >= revision)
    }

    fn set(&mut self, key: &str, revision: Revision, holdings: Holdings) {
        self.hold(&holdings);
        if let Some(before) = self.stored.insert(key.into(), Stored { holdings, revision }) {
            self.release(&before.holdings);
        }
    }
}

impl Allocator {
    /// Begins with all of these numbers free. Of each range, the first few are left for those who ask for them.
    pub(crate) fn new(addresses: (Range<u32>, u32), ports: (Range<u32>, u32)) -> Self {
        Self(Arc::new(Mutex::new(State {
            addresses: Pool::new(addresses.0, addresses.1),
            ports: Pool::new(ports.0, ports.1),
            stored: HashMap::new(),
            followed: 0,
        })))
    }

    /// Begins a reservation, of nothing yet. One for a dry run finds out what is free, and takes nothing from anybody.
    pub(crate) fn reserve(&self, dry_run: bool) -> Reservation {
        Reservation { allocator: self.clone(), held: Holdings::default(), dry_run }
    }

    /// Takes note of what this server has written: what a Service has since a revision, nothing if it was deleted.
    pub(crate) fn note(&self, key: &str, revision: Revision, holdings: Holdings) {
        let mut state = self.0.lock();
        // Of one that is not known and has nothing, there is nothing to remember.
        let matters = holdings != Holdings::default() || state.stored.contains_key(key);
        if matters && !state.knows(key, revision) {
            state.set(key, revision, holdings);
        }
    }

    /// Follows an event of the storage. What was noted already is not read again; what cannot be read stays as it was.
    pub(crate) fn follow(
        &self,
        key: &str,
        revision: Revision,
        is_deleted: bool,
        read: impl FnOnce() -> Option<Holdings>,
    ) {
        let is_known = self.0.lock().knows(key, revision);
        let holdings = if is_known || is_deleted { None } else { read() };
        let mut state = self.0.lock();
        let is_newest = state.stored.get(key).is_none_or(|stored| stored.revision <= revision);
        if is_deleted && is_newest {
            if let Some(gone) = state.stored.remove(key) {
                state.release(&gone.holdings);
            }
        } else if let Some(holdings) = holdings.filter(|_| is_newest) {
            state.set(key, revision, holdings);
        }
        // Other events of this revision may follow.
        state.followed = state.followed.max(revision.saturating_sub(1));
    }

    /// Replaces everything by what is stored at a revision: the key of each Service, since when it is as it is, what it has.
    pub(crate) fn replace(
        &self,
        services: impl IntoIterator<Item = (Box<str>, Revision, Holdings)>,
        revision: Revision,
    ) {
        let mut state = self.0.lock();
        let (newer, older): (HashMap<_, _>, HashMap<_, _>) =
            std::mem::take(&mut state.stored).into_iter().partition(|(_, stored)| stored.revision > revision);
        state.stored = newer;
        older.values().for_each(|stored| state.release(&stored.holdings));
        for (key, revision, holdings) in services {
            if state.stored.get(&key).is_none_or(|stored| stored.revision < revision) {
                state.set(&key, revision, holdings);
            }
        }
        state.followed = revision;
    }
}

/// Cluster IPs and node ports that are held for one write. Dropping it releases them: once the write has been noted, the
/// Service holds them itself, and if the write failed, nobody does.
pub(crate) struct Reservation {
    allocator: Allocator,
    held: Holdings,
    dry_run: bool,
}

impl Reservation {
    pub(crate) fn take_address(&mut self, address: Ipv4Addr) -> Result<(), Refusal> {
        let mut state = self.allocator.0.lock();
        take(&mut state.addresses, &mut self.held.addresses, address.to_bits(), self.dry_run)
    }

    pub(crate) fn any_address(&mut self) -> Result<Ipv4Addr, Refusal> {
        let mut state = self.allocator.0.lock();
        any(&mut state.addresses, &mut self.held.addresses, self.dry_run).map(Ipv4Addr::from_bits)
    }

    pub(crate) fn take_port(&mut self, port: i64) -> Result<(), Refusal> {
        let port = u32::try_from(port).map_err(|_| Refusal::OutOfRange)?;
        let mut state = self.allocator.0.lock();
        take(&mut state.ports, &mut self.held.ports, port, self.dry_run)
    }

    pub(crate) fn any_port(&mut self) -> Result<u32, Refusal> {
        let mut state = self.allocator.0.lock();
        any(&mut state.ports, &mut self.held.ports, self.dry_run)
    }

    fn is_empty(&self) -> bool {
        self.held == Holdings::default()
    }
}

fn take(pool: &mut Pool, held: &mut BTreeSet<u32>, number: u32, dry_run: bool) -> Result<(), Refusal> {
    if !pool.range.contains(&number) {
        return Err(Refusal::OutOfRange);
    }
    if !pool.is_free(number) || held.contains(&number) {
        return Err(Refusal::Taken);
    }
    held.insert(number);
    if !dry_run {
        pool.hold(number);
    }
    Ok(())
}

fn any(pool: &mut Pool, held: &mut BTreeSet<u32>, dry_run: bool) -> Result<u32, Refusal> {
    let number = pool.any(held).ok_or(Refusal::Full)?;
    take(pool, held, number, dry_run)?;
    Ok(number)
}

/// Adds to the commit of a Service what other servers have to know about it: that what is reserved for it was free, and what it gives
/// back.
fn claim(
    commit: Commit,
    key: &str,
    reserved: Option<&Reservation>,
    previous: Option<&Value>,
    next: &Holdings,
) -> Commit {
    let reserved = reserved.map(|reserved| reserved.held.claims()).unwrap_or_default();
    let commit = reserved
        .into_iter()
        .fold(commit, |commit, claim| commit.absent(claim.as_str()).put(claim, key.to_owned()));
    let (before, kept) = (previous.map(Holdings::of).unwrap_or_default().claims(), next.claims());
    before.into_iter().filter(|claim| !kept.contains(claim)).fold(commit, Commit::delete)
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.dry_run && !self.is_empty() {
            self.allocator.0.lock().release(&self.held);
        }
    }
}

impl Writer {
    /// Commits the next state of an object, `None` if it is deleted, after a previous one, `None` if it is new. Of a Service, what it has from then on is noted before
    /// this returns, and only then its reservation is released.
    ///
    /// If something is reserved, the commit goes to its end even if the caller does not wait for it. Whether it was made
    /// would not be known otherwise, and what it gives away would seem to be free.
    pub(super) async fn store(
        &self,
        resource: &Resource,
        key: &str,
        commit: Commit,
        previous: Option<&Value>,
        object: Option<&Value>,
        reservation: Option<Reservation>,
    ) -> Result<Committed, Error> {
        if !resource.is_core("services") {
            return self.storage.commit(commit).await;
        }
        let holdings = object.map(Holdings::of).unwrap_or_default();
        let commit = match self.storage.is_shared() {
            true => claim(commit, key, reservation.as_ref(), previous, &holdings),
            false => commit,
        };
        let Some(reservation) = reservation.filter(|reservation| !reservation.is_empty()) else {
            let committed = self.storage.commit(commit).await?;
            self.allocator.note(key, committed.revision, holdings);
            return Ok(committed);
        };
        let (storage, key) = (Arc::clone(&self.storage), key.to_owned());
        let write = tokio::spawn(async move {
            let committed = storage.commit(commit).await?;
            reservation.allocator.note(&key, committed.revision, holdings);
            drop(reservation);
            Ok(committed)
        });
        match write.await {
            Ok(committed) => committed,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime shuts down.
                Err(_) => Err(Error::Closed),
            },
        }
    }
}

#[cfg(test)]
mod tests;
