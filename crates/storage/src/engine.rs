use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::follower::Follower;
use crate::history::History;
use crate::hub::{Hub, Mailbox};
use crate::pack::Pack;
use crate::tree::Tree;
use crate::{Error, Event, Found, Options, Page, Range, Revision, Stats, Watch};

/// So many trees of the past are kept for those who read page after page.
const REMEMBERED: usize = 8;

/// So many packs are kept unpacked for the next reader: watchers that were cut off together come back together.
const UNPACKED: usize = 8;

/// What has been committed and may be seen: the part that the backends in this process share.
///
/// The current tree is kept, and the events of the window, of which old ones are packed. A tree of the past is made by undoing events on the nearest
/// later tree at hand, and kept for the next page; keeping a tree for every revision of the window would cost several
/// nodes for each. Readers and writers share a lock for as long as it takes to clone or replace a tree.
pub(crate) struct Engine {
    state: RwLock<State>,
    options: Options,
    unpacked: Mutex<VecDeque<Unpacked>>,
}

/// A pack and its events.
type Unpacked = (Arc<Pack>, Arc<[Arc<Event>]>);

pub(crate) struct State {
    now: Tree,
    past: VecDeque<Tree>,
    pub(crate) history: History,
    pub(crate) hub: Hub,
    pub(crate) closed: bool,
}

impl State {
    pub(crate) fn revision(&self) -> Revision {
        self.now.revision()
    }

    /// Whether a revision can be asked for.
    pub(crate) fn check(&self, revision: Revision) -> Result<(), Error> {
        if revision > self.revision() {
            let current = self.revision();
            return Err(Error::Future { current });
        }
        if revision < self.history.oldest() {
            let oldest = self.history.oldest();
            return Err(Error::Compacted { oldest });
        }
        Ok(())
    }
}

impl Engine {
    /// Begins with a tree whose past is not known.
    pub(crate) fn new(now: Tree, options: Options) -> Self {
        let state = State {
            history: History::since(now.revision()),
            now,
            past: VecDeque::new(),
            hub: Hub::default(),
            closed: false,
        };
        Self { state: RwLock::new(state), options, unpacked: Mutex::default() }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }

    pub(crate) fn now(&self) -> Tree {
        self.read().now.clone()
    }

    /// Shows what has been committed: the tree after it, and the events that lead there. The caller makes sure that
    /// this is called in the order of revisions.
    pub(crate) fn publish(&self, now: Tree, events: Vec<Arc<Event>>) {
        let at = self.options.clock.now();
        let mut wakers = Vec::new();
        let mut state = self.write();
        let current = now.revision();
        let replaced = std::mem::replace(&mut state.now, now);
        for event in events {
            state.hub.tell(&event, &mut wakers);
            state.history.push(event, at);
        }
        let forgotten = state.history.trim(&self.options.window, current, at);
        let stale = forget_trees(&mut state);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        drop((replaced, forgotten, stale));
    }

    /// Shows another state, of which it is not known how it came about: whoever watches has missed something, and is told so.
    #[cfg(feature = "etcd")]
    pub(crate) fn replace(&self, now: Tree) {
        let mut wakers = Vec::new();
        let mut state = self.write();
        let history = History::since(now.revision());
        let replaced = std::mem::replace(&mut state.now, now);
        let forgotten = (std::mem::replace(&mut state.history, history), std::mem::take(&mut state.past));
        state.hub.lose(&mut wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        drop((replaced, forgotten));
    }

    pub(crate) fn get(&self, key: &str, at: Option<Revision>) -> Result<Found, Error> {
        let tree = self.tree(at)?;
        Ok(Found { entry: tree.get(key).cloned(), revision: tree.revision() })
    }

    pub(crate) fn range(&self, range: &Range) -> Result<Page, Error> {
        let tree = self.tree(range.at)?;
        let page = tree.page(range);
        if page.more {
            self.remember(tree);
        }
        Ok(page)
    }

    pub(crate) fn watch(self: &Arc<Self>, prefix: &str, after: Revision) -> Result<Watch, Error> {
        let mailbox = Arc::new(Mailbox::new(self.options.limits.watch_buffer, after));
        let id = {
            let mut state = self.write();
            state.check(after)?;
            state.hub.add(prefix.as_bytes(), Arc::clone(&mailbox))
        };
        Ok(Watch::new(Follower::new(Arc::clone(self), prefix, id, mailbox, after)))
    }

    pub(crate) fn compact(&self, to: Revision) -> Result<(), Error> {
        let mut state = self.write();
        if to > state.revision() {
            let current = state.revision();
            return Err(Error::Future { current });
        }
        let forgotten = state.history.compact(to);
        let stale = forget_trees(&mut state);
        drop(state);
        drop((forgotten, stale));
        Ok(())
    }

    /// The events of a pack: the same for those who ask soon after each other.
    pub(crate) fn unpack(&self, pack: &Arc<Pack>) -> Option<Arc<[Arc<Event>]>> {
        let known = |unpacked: &VecDeque<Unpacked>| {
            unpacked.iter().find(|(known, _)| Arc::ptr_eq(known, pack)).map(|(_, events)| Arc::clone(events))
        };
        if let Some(events) = known(&self.unpacked.lock()) {
            return Some(events);
        }
        let events: Arc<[Arc<Event>]> = pack.events()?.into();
        let mut unpacked = self.unpacked.lock();
        if let Some(events) = known(&unpacked) {
            return Some(events);
        }
        unpacked.push_back((Arc::clone(pack), Arc::clone(&events)));
        let displaced = (unpacked.len() > UNPACKED).then(|| unpacked.pop_front());
        drop(unpacked);
        drop(displaced);
        Some(events)
    }

    /// Packs some of the past, if enough of it is old. Whether there may be more. Nobody is kept waiting for the packing itself.
    pub(crate) fn pack(&self) -> bool {
        drop(std::mem::take(&mut *self.unpacked.lock()));
        let now = self.options.clock.now();
        let Some(old) = self.read().history.to_pack(&self.options.limits, now) else {
            return false;
        };
        let Some(pack) = Pack::of(&old) else {
            tracing::warn!(
                "some events of the past could not be packed, which is a bug; they are kept as they are"
            );
            return false;
        };
        let replaced = self.write().history.replace(&old, pack);
        drop((replaced, old));
        true
    }

    /// The part of the statistics that is known here.
    pub(crate) fn stats(&self) -> Stats {
        let state = self.read();
        Stats {
            revision: state.revision(),
            oldest: state.history.oldest(),
            entries: state.now.len(),
            events: state.history.len(),
            packed: state.history.packed(),
            watchers: state.hub.watchers(),
            ..Stats::default()
        }
    }

    /// Ends all watches, once they have told what there is.
    pub(crate) fn close(&self) {
        let mut wakers = Vec::new();
        let mut state = self.write();
        state.closed = true;
        state.hub.close(&mut wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn tree(&self, at: Option<Revision>) -> Result<Tree, Error> {
        let state = self.read();
        let Some(at) = at else {
            return Ok(state.now.clone());
        };
        state.check(at)?;
        let later = state.past.iter().filter(|tree| tree.revision() >= at);
        let nearest = later.min_by_key(|tree| tree.revision()).unwrap_or(&state.now);
        let mut tree = nearest.clone();
        if tree.revision() == at {
            return Ok(tree);
        }
        let packs: Vec<_> = state.history.packs_after(at).cloned().collect();
        let since: Vec<_> =
            state.history.after(at).take_while(|event| event.revision <= tree.revision()).cloned().collect();
        let current = state.revision();
        drop(state);
        let mut undone = Vec::new();
        for pack in packs {
            // Cannot fail, and if it did, it would be as if the past were forgotten.
            let events = self.unpack(&pack).ok_or(Error::Compacted { oldest: current })?;
            let range = at + 1..=tree.revision();
            undone.extend(events.iter().filter(|event| range.contains(&event.revision)).cloned());
        }
        undone.extend(since);
        tree.undo(&undone, at);
        self.remember(tree.clone());
        Ok(tree)
    }

    fn remember(&self, tree: Tree) {
        let mut state = self.write();
        let known = state.past.iter().any(|known| known.revision() == tree.revision());
        if known || tree.revision() < state.history.oldest() {
            return;
        }
        state.past.push_back(tree);
        let displaced = (state.past.len() > REMEMBERED).then(|| state.past.pop_front());
        drop(state);
        drop(displaced);
    }
}

/// Takes the trees that nobody can ask for any more, to be freed where nobody waits.
fn forget_trees(state: &mut State) -> Vec<Tree> {
    let oldest = state.history.oldest();
    let (kept, stale) = state.past.drain(..).partition(|tree| tree.revision() >= oldest);
    state.past = kept;
    stale.into()
}
