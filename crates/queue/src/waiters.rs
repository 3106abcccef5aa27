use std::mem;
use std::task::Waker;

use slab::Slab;

use crate::list::{Links, List};
use crate::timers::Nanos;

/// The workers that wait for an item, and who of them keeps the time.
///
/// Each is either asleep or woken (and not polled since). As long as someone is asleep, after every operation
///
/// - if an item is ready, someone is woken;
/// - if a timer is pending, someone is woken, or the keeper sleeps no longer than until that timer.
///
/// Whoever is woken looks at everything again and calls [`balance`](Waiters::balance) when done, also when it gives
/// up, so waking one at a time is enough. Wakers are handed out to be woken or dropped after the lock is released:
/// both may run foreign code.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    all: Slab<Waiter>,
    /// The sleepers but for the keeper, longest asleep first.
    asleep: List,
    links: Links,
    woken: usize,
    keeper: Option<Keeper>,
}

#[derive(Debug)]
struct Waiter {
    /// None: woken.
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug)]
struct Keeper {
    id: u32,
    until: Nanos,
}

impl Waiters {
    /// Puts a waiter to sleep, a new one if `id` is none. If it is to keep the time, the answer is until when to
    /// sleep. Also gives a waker to drop.
    pub(crate) fn sleep(
        &mut self,
        id: &mut Option<u32>,
        waker: &Waker,
        next_timer: Option<Nanos>,
    ) -> (Option<Nanos>, Option<Waker>) {
        let (id, old) = match *id {
            Some(known) => (known, self.renew(known, waker)),
            None => {
                let new = self.all.insert(Waiter { waker: Some(waker.clone()) }) as u32;
                self.asleep.push_back(&mut self.links, new);
                *id = Some(new);
                (new, None)
            }
        };
        let keeps = self.keeper.is_none_or(|keeper| keeper.id == id);
        match next_timer.filter(|_| keeps) {
            Some(until) => {
                if self.keeper.is_none() {
                    self.asleep.remove(&mut self.links, id);
                }
                self.keeper = Some(Keeper { id, until });
                (Some(until), old)
            }
            None => {
                if keeps && self.keeper.take().is_some() {
                    self.asleep.push_back(&mut self.links, id);
                }
                (None, old)
            }
        }
    }

    /// Takes a waiter out. Gives a waker to drop.
    pub(crate) fn leave(&mut self, id: u32) -> Option<Waker> {
        let waiter = self.all.remove(id as usize);
        let is_asleep = waiter.waker.is_some();
        if !is_asleep {
            self.woken -= 1;
        }
        if self.keeper.is_some_and(|keeper| keeper.id == id) {
            self.keeper = None;
        } else if is_asleep {
            self.asleep.remove(&mut self.links, id);
        }
        waiter.waker
    }

    /// Whom to wake now that `ready` items are waiting and `next_timer` is the first timer.
    #[inline]
    pub(crate) fn balance(&mut self, ready: usize, next_timer: Option<Nanos>) -> Option<Waker> {
        if self.all.len() == self.woken {
            return None;
        }
        if self.woken < ready {
            // The keeper only if there is no one else, because that means a hand-over.
            return self.wake_sleeper().or_else(|| self.wake_keeper());
        }
        match (next_timer, self.keeper) {
            (Some(_), _) if self.woken > 0 => None,
            (Some(_), None) => self.wake_sleeper(),
            (Some(next), Some(keeper)) if next < keeper.until => self.wake_keeper(),
            _ => None,
        }
    }

    pub(crate) fn wake_all(&mut self) -> Vec<Waker> {
        let wakers = std::iter::from_fn(|| self.wake_sleeper().or_else(|| self.wake_keeper()));
        wakers.collect()
    }

    /// Asleep again after having been polled, woken or not.
    fn renew(&mut self, id: u32, waker: &Waker) -> Option<Waker> {
        let waiter = &mut self.all[id as usize];
        match &mut waiter.waker {
            Some(old) if old.will_wake(waker) => None,
            Some(old) => Some(mem::replace(old, waker.clone())),
            woken @ None => {
                *woken = Some(waker.clone());
                self.woken -= 1;
                if self.keeper.is_none_or(|keeper| keeper.id != id) {
                    self.asleep.push_back(&mut self.links, id);
                }
                None
            }
        }
    }

    fn wake_sleeper(&mut self) -> Option<Waker> {
        let id = self.asleep.head()?;
        self.asleep.remove(&mut self.links, id);
        self.wake(id)
    }

    /// A woken keeper stays keeper until it is polled or leaves.
    fn wake_keeper(&mut self) -> Option<Waker> {
        self.wake(self.keeper?.id)
    }

    fn wake(&mut self, id: u32) -> Option<Waker> {
        let waker = self.all[id as usize].waker.take();
        self.woken += usize::from(waker.is_some());
        waker
    }
}
