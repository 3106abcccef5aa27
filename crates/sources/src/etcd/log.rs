//! Responses of a watch as entries of a log. Without I/O.

use watchkeeper_core::{Event, Version};
use watchkeeper_etcd::{Change, ChangeKind};

use super::documents::{self, Said};
use super::names::Named;
use super::settings::Settings;

/// Makes entries of changes.
///
/// A position is told with the last entry of a revision, when all of that revision were told: who resumes there begins with the next one.
pub(super) struct Log {
    /// The revision up to which everything was told.
    pub(super) position: i64,
}

impl Log {
    /// Changes in the order of their revisions. Unless this is `complete`, more may come of the last one.
    pub(super) fn changes(&mut self, settings: &Settings, changes: &[Change], complete: bool) -> Vec<Event> {
        let mut events = Vec::with_capacity(changes.len());
        for (at, change) in changes.iter().enumerate() {
            let revision = change.kv.mod_revision;
            let ends = changes.get(at + 1).map_or(complete, |next| next.kv.mod_revision > revision);
            let position = ends.then(|| {
                self.position = self.position.max(revision);
                Version::from(revision.unsigned_abs())
            });
            events.extend(entry(settings, change, position));
        }
        events
    }

    /// Everything up to this revision was told.
    pub(super) fn progress(&mut self, revision: i64) -> Option<Event> {
        (revision > self.position).then(|| {
            self.position = revision;
            Event::Position(Version::from(revision.unsigned_abs()))
        })
    }
}

fn entry(settings: &Settings, change: &Change, position: Option<Version>) -> Option<Event> {
    if change.kind == ChangeKind::Delete {
        return match settings.named(&change.kv.key) {
            // Who wrote down that a key is unreadable hears that it is gone, too.
            Named::Object(key) | Named::Unreadable(key) => Some(Event::Gone { key, position }),
            Named::Status => position.map(Event::Position),
        };
    }
    match documents::read(settings, &change.kv) {
        Said::Object(document) => Some(Event::Put { document: *document, position }),
        Said::Rejected(rejection) => Some(Event::Rejected(rejection.at(position))),
        Said::Nothing => position.map(Event::Position),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchkeeper_etcd::KeyValue;

    fn put(key: &str, revision: i64) -> Change {
        let kv = KeyValue {
            key: key.to_owned().into(),
            value: "{}".into(),
            mod_revision: revision,
            ..KeyValue::default()
        };
        Change { kv, ..Change::default() }
    }

    fn show(events: &[Event]) -> Vec<String> {
        let at = |position: &Option<Version>| position.as_ref().map_or("-".into(), ToString::to_string);
        let show = |event: &Event| match event {
            Event::Put { document, position } => format!("{}@{}", document.header.key, at(position)),
            Event::Gone { key, position } => format!("!{key}@{}", at(position)),
            Event::Rejected(rejection) => {
                format!("?{}@{}", rejection.key.as_ref().unwrap(), at(&rejection.position))
            }
            Event::Position(version) => format!("@{version}"),
            other => panic!("{other:?}"),
        };
        events.iter().map(show).collect()
    }

    #[test]
    fn a_position_is_told_with_the_last_entry_of_a_revision() {
        let settings = Settings::new(Vec::new(), "/");
        let mut log = Log { position: 1 };
        let changes = [put("/a", 5), put("/b", 5), put("/c", 6), put("/d", 7), put("/e", 7)];
        assert_eq!(show(&log.changes(&settings, &changes, true)), ["a@-", "b@5", "c@6", "d@-", "e@7"]);
        // Parts of one answer: the last revision may go on.
        assert_eq!(show(&log.changes(&settings, &[put("/a", 8), put("/b", 9)], false)), ["a@8", "b@-"]);
        assert_eq!(log.position, 8);
        assert_eq!(show(&log.changes(&settings, &[put("/c", 9)], true)), ["c@9"]);
        assert!(log.progress(9).is_none() && log.progress(4).is_none());
        assert_eq!(show(&log.progress(12).into_iter().collect::<Vec<_>>()), ["@12"]);
    }

    #[test]
    fn what_is_no_object_moves_the_position_and_nothing_else() {
        let mut settings = Settings::new(Vec::new(), "/");
        settings.status = Some(super::super::settings::StatusKey::Suffix(".status".into()));
        let mut log = Log { position: 1 };
        let mut bad = put("/b", 6);
        bad.kv.value = "{".into();
        let gone = Change { kind: ChangeKind::Delete, ..put("/b", 7) };
        let changes = [put("/a", 5), put("/a.status", 5), bad, gone, put("/a.status", 8)];
        assert_eq!(show(&log.changes(&settings, &changes, true)), ["a@-", "@5", "?b@6", "!b@7", "@8"]);
    }
}
