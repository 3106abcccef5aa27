//! The objects of each member, which member wins for each key, and the events of the union. Without I/O.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use watchkeeper_core::{Document, Event, Header, Key, Reason, Rejection, Uid, Version};

use super::versions::{join, tagged};

/// The union as far as the reader was told. Of the members that have a key, the first one counts.
pub(super) struct Merge {
    members: Vec<Member>,
    /// Doubles are passed over in silence.
    overriding: bool,
    /// Positions mean something to the reader.
    has_log: bool,
    /// The reader is being told everything, one member after the other.
    initial: bool,
}

struct Member {
    name: Arc<str>,
    /// If a snapshot lacks more than this share of its objects, another one has to confirm it.
    confirm_shrink: Option<f32>,
    objects: HashMap<Key, Held>,
    /// What the reader heard of it by an earlier feed.
    before: HashSet<Key>,
    /// What a snapshot that is under way has mentioned.
    listed: Option<HashSet<Key>>,
    /// Something in that snapshot could not be named.
    lossy: bool,
    position: Option<Version>,
    /// The last snapshot lacked so much that it has to be confirmed.
    unconfirmed: bool,
    /// Keys whose objects are to be told and are not at hand: only a new snapshot has them.
    wanted: HashSet<Key>,
    /// Those of them that the snapshot under way will have, for they were wanted when it began.
    due: HashSet<Key>,
}

/// An object of a member.
#[derive(Default)]
struct Held {
    uid: Option<Uid>,
    /// `None` if the state is not known, because an earlier feed told of it.
    version: Option<Version>,
    /// Another member's object counts.
    lost: bool,
    /// The object itself, if it had lost when it came.
    document: Option<Box<Document>>,
}

impl Merge {
    pub(super) fn new(
        members: impl Iterator<Item = (Arc<str>, Option<f32>)>,
        overriding: bool,
        has_log: bool,
    ) -> Self {
        let member = |(name, confirm_shrink)| Member {
            name,
            confirm_shrink,
            objects: HashMap::new(),
            before: HashSet::new(),
            listed: None,
            lossy: false,
            position: None,
            unconfirmed: false,
            wanted: HashSet::new(),
            due: HashSet::new(),
        };
        Self { members: members.map(member).collect(), overriding, has_log, initial: true }
    }

    /// The same, to be told from the beginning. It remembers which objects must not get lost unnoticed.
    pub(super) fn anew(mut self) -> Self {
        self.initial = true;
        for member in &mut self.members {
            member.before.extend(member.objects.drain().map(|(key, _)| key));
            member.wanted.clear();
            (member.listed, member.position) = (None, None);
        }
        self
    }

    /// All members have been told.
    pub(super) fn begun(&mut self) -> Event {
        self.initial = false;
        let none = Version::from("");
        Event::Complete(join(self.members.iter().map(|member| member.position.as_ref().unwrap_or(&none))))
    }

    /// The position of a member.
    pub(super) fn position_of(&self, member: usize) -> Option<&Version> {
        self.members[member].position.as_ref()
    }

    /// Whether a member has to take a new snapshot, because objects of it are to be told that are not at hand.
    pub(super) fn wants(&self, member: usize) -> bool {
        !self.members[member].wanted.is_empty()
    }

    /// Whether a member has to take a new snapshot, which confirms the last one or does not.
    pub(super) fn doubts(&self, member: usize) -> bool {
        self.members[member].unconfirmed
    }

    /// The position at which the reader could go on; none while something is still to be told.
    pub(super) fn position(&self) -> Option<Version> {
        let is_settled = |member: &Member| member.listed.is_none() && member.wanted.is_empty();
        if !self.has_log || self.initial || !self.members.iter().all(is_settled) {
            return None;
        }
        let positions: Option<Vec<&Version>> =
            self.members.iter().map(|member| member.position.as_ref()).collect();
        Some(join(positions?.into_iter()))
    }

    /// The feed of a member has ended. A snapshot that was not complete implies nothing.
    pub(super) fn interrupted(&mut self, member: usize) {
        self.members[member].listed = None;
    }

    /// Takes an event of a member over, and gives what the reader has to hear.
    pub(super) fn take(&mut self, member: usize, event: Event) -> Vec<Event> {
        let mut told = Vec::new();
        let moved = match event {
            Event::Begin => {
                let entry = &mut self.members[member];
                (entry.listed, entry.lossy) = (Some(HashSet::new()), false);
                entry.due.clone_from(&entry.wanted);
                None
            }
            Event::Item(document) => {
                if let Some(listed) = &mut self.members[member].listed {
                    listed.insert(document.header.key.clone());
                }
                self.put(member, document, &mut told);
                None
            }
            Event::Complete(version) => {
                self.complete(member, &mut told);
                Some(version)
            }
            Event::Put { document, position } => {
                self.put(member, document, &mut told);
                position
            }
            Event::Delete { document, position } => {
                let held = self.members[member].objects.get(&document.header.key);
                if held.is_some_and(|held| held.uid.is_none() || held.uid == document.header.uid) {
                    let key = document.header.key.clone();
                    self.gone(member, key, Some(document), &mut told);
                }
                position
            }
            Event::Gone { key, position } => {
                self.gone(member, key, None, &mut told);
                position
            }
            Event::Position(position) => Some(position),
            Event::Rejected(Rejection { key, position, reason, detail, .. }) => {
                let entry = &mut self.members[member];
                match (&key, &mut entry.listed) {
                    (Some(key), Some(listed)) => drop(listed.insert(key.clone())),
                    (None, Some(_)) => entry.lossy = true,
                    (_, None) => {}
                }
                if let Some(key) = key.as_ref().filter(|key| entry.before.remove(*key)) {
                    entry.objects.entry(key.clone()).or_default();
                }
                let detail = format!("{}: {detail}", entry.name);
                told.push(Event::Rejected(Rejection::new(key, reason, detail)));
                position
            }
            unknown => {
                told.push(unknown);
                None
            }
        };
        if let Some(position) = moved.filter(|position| !position.is_empty()) {
            self.members[member].position = Some(position);
            self.place(&mut told);
        }
        told
    }

    /// Has the last thing told say which position is reached by it.
    fn place(&self, told: &mut Vec<Event>) {
        let Some(reached) = self.position() else { return };
        match told.last_mut() {
            Some(
                Event::Put { position, .. } | Event::Delete { position, .. } | Event::Gone { position, .. },
            ) => {
                *position = Some(reached);
            }
            _ => told.push(Event::Position(reached)),
        }
    }

    /// A snapshot of a member is complete: what it did not mention is gone, unless that is in doubt.
    fn complete(&mut self, member: usize, told: &mut Vec<Event>) {
        let initial = self.initial;
        let entry = &mut self.members[member];
        let listed = entry.listed.take().unwrap_or_default();
        let before = std::mem::take(&mut entry.before);
        let held = if initial { before.len() } else { entry.objects.len() };
        let known: Box<dyn Iterator<Item = &Key>> =
            if initial { Box::new(before.iter()) } else { Box::new(entry.objects.keys()) };
        let mut missing: Vec<Key> = known.filter(|key| !listed.contains(key)).cloned().collect();
        missing.sort();
        let suspicious = entry.confirm_shrink.is_some_and(|share| {
            !missing.is_empty() && (missing.len() == held || missing.len() as f32 > share * held as f32)
        });
        entry.unconfirmed = suspicious && !entry.unconfirmed;
        let in_doubt = entry.unconfirmed || entry.lossy;
        let due = std::mem::take(&mut entry.due);
        if !entry.unconfirmed {
            entry.wanted.retain(|key| !due.contains(key));
        }
        for key in missing {
            match (initial, in_doubt) {
                (false, true) => {}
                (false, false) => self.gone(member, key, None, told),
                // The reader deletes what it does not hear of.
                (true, false) => {}
                (true, true) => {
                    if self.teller(&key).is_none() {
                        told.push(kept(&self.members[member].name, key.clone()));
                    }
                    self.members[member].objects.insert(key, Held::default());
                }
            }
        }
    }

    /// The member whose object counts.
    fn teller(&self, key: &Key) -> Option<usize> {
        self.members.iter().position(|member| member.objects.contains_key(key))
    }

    fn put(&mut self, member: usize, document: Document, told: &mut Vec<Event>) {
        let Header { key, uid, version, .. } = &document.header;
        let (key, uid, version) = (key.clone(), uid.clone(), version.clone());
        let winner = self.teller(&key).filter(|teller| *teller < member);
        let entry = &mut self.members[member];
        entry.before.remove(&key);
        let was_wanted = entry.wanted.remove(&key);
        let held = entry.objects.entry(key.clone()).or_default();
        let is_same = held.uid == uid && held.version.as_ref() == Some(&version) && !version.is_empty();
        if is_same && !was_wanted {
            return;
        }
        (held.uid, held.version) = (uid, Some(version));
        match winner {
            Some(winner) => {
                held.document = Some(Box::new(document));
                if !std::mem::replace(&mut held.lost, true) {
                    self.conflict(winner, member, &key, told);
                }
            }
            None => {
                (held.lost, held.document) = (false, None);
                for other in member + 1..self.members.len() {
                    let entry = &mut self.members[other];
                    entry.wanted.remove(&key);
                    if entry
                        .objects
                        .get_mut(&key)
                        .is_some_and(|held| !std::mem::replace(&mut held.lost, true))
                    {
                        self.conflict(member, other, &key, told);
                    }
                }
                let document = tagged(member, document);
                told.push(if self.initial {
                    Event::Item(document)
                } else {
                    Event::Put { document, position: None }
                });
            }
        }
    }

    fn conflict(&self, winner: usize, loser: usize, key: &Key, told: &mut Vec<Event>) {
        if !self.overriding {
            let (winner, loser) = (&self.members[winner].name, &self.members[loser].name);
            let detail = format!("{loser}: {winner} has an object of this name, and comes before it");
            let (key, reason) = (Some(key.clone()), Reason::Conflict);
            told.push(Event::Rejected(Rejection::new(key, reason, detail)));
        }
    }

    fn gone(&mut self, member: usize, key: Key, last: Option<Document>, told: &mut Vec<Event>) {
        let counted = self.teller(&key) == Some(member);
        self.members[member].wanted.remove(&key);
        if self.members[member].objects.remove(&key).is_none() || !counted {
            return;
        }
        let Some(heir) = self.teller(&key) else {
            told.push(match last {
                Some(document) => Event::Delete { document: tagged(member, document), position: None },
                None => Event::Gone { key, position: None },
            });
            return;
        };
        let held = self.members[heir].objects.entry(key.clone()).or_default();
        held.lost = false;
        match held.document.take() {
            Some(document) => told.push(Event::Put { document: tagged(heir, *document), position: None }),
            // It was told before the other one came, and is not at hand any more.
            None => drop(self.members[heir].wanted.insert(key)),
        }
    }
}

/// What an earlier feed told of and a snapshot that is in doubt does not mention.
fn kept(member: &str, key: Key) -> Event {
    let detail = format!("{member}: not there any more; it stays until that is certain");
    Event::Rejected(Rejection::new(Some(key), Reason::Unreadable, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(name: &str, version: u64) -> Document {
        Document::named(Key::new(None, name), Version::from(version), b"{}".to_vec())
    }

    fn put(name: &str, version: u64) -> Event {
        Event::Put { document: document(name, version), position: Some(Version::from(version)) }
    }

    fn gone(name: &str, version: u64) -> Event {
        Event::Gone { key: Key::new(None, name), position: Some(Version::from(version)) }
    }

    fn show(events: &[Event]) -> Vec<String> {
        let at = |position: &Option<Version>| position.as_ref().map_or("-".into(), ToString::to_string);
        let show = |event: &Event| match event {
            Event::Put { document, position } => {
                format!("{}={} {}", document.header.key, document.header.version, at(position))
            }
            Event::Gone { key, position } => format!("!{key} {}", at(position)),
            Event::Position(version) => format!("@{version}"),
            Event::Rejected(rejection) => format!("?{}", rejection.key.as_ref().unwrap()),
            other => panic!("{other:?}"),
        };
        events.iter().map(show).collect()
    }

    /// Two members with logs, both empty, that have been told.
    fn pair() -> Merge {
        let names = ["a", "b"].into_iter().map(|name| (name.into(), None));
        let mut merge = Merge::new(names, true, true);
        for member in 0..2 {
            merge.take(member, Event::Begin);
            merge.take(member, Event::Complete(Version::from(1)));
        }
        merge.begun();
        merge
    }

    #[test]
    fn positions_of_both_are_told_with_the_last_thing_that_an_event_makes_of_itself() {
        let mut merge = pair();
        assert_eq!(show(&merge.take(1, put("x", 2))), ["x=1:2 u1,2"]);
        assert_eq!(show(&merge.take(0, put("x", 2))), ["x=0:2 u2,2"]);
        // Of an object that does not count, only the position.
        assert_eq!(show(&merge.take(1, put("x", 3))), ["@u2,3"]);
        assert_eq!(show(&merge.take(0, gone("x", 3))), ["x=1:3 u3,3"]);
        assert_eq!(show(&merge.take(1, gone("x", 4))), ["!x u3,4"]);
        assert_eq!(show(&merge.take(1, gone("y", 5))), ["@u3,5"]);
    }

    #[test]
    fn an_object_that_is_not_at_hand_holds_back_the_position_until_a_snapshot_has_it() {
        let mut merge = pair();
        merge.take(1, put("x", 2));
        merge.take(0, put("x", 2));
        assert!(merge.take(0, gone("x", 3)).is_empty());
        assert!(merge.wants(1) && merge.position().is_none());
        assert_eq!(show(&merge.take(0, put("z", 4))), ["z=0:4 -"]);
        merge.take(1, Event::Begin);
        assert_eq!(show(&merge.take(1, Event::Item(document("x", 2)))), ["x=1:2 -"]);
        assert_eq!(show(&merge.take(1, Event::Complete(Version::from(5)))), ["@u4,5"]);
        assert!(!merge.wants(1));
    }

    #[test]
    fn an_object_that_is_wanted_after_its_snapshot_mentioned_it_is_wanted_still() {
        let mut merge = pair();
        merge.take(1, put("x", 2));
        merge.take(0, put("x", 2));
        merge.take(1, Event::Begin);
        merge.take(1, Event::Item(document("x", 2)));
        merge.take(0, gone("x", 3));
        merge.take(1, Event::Complete(Version::from(2)));
        assert!(merge.wants(1), "another snapshot has to say it");
        merge.take(1, Event::Begin);
        assert_eq!(show(&merge.take(1, Event::Item(document("x", 2)))), ["x=1:2 -"]);
        merge.take(1, Event::Complete(Version::from(2)));
        assert!(!merge.wants(1));
    }
}
