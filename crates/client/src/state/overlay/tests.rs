use std::sync::Arc;

use super::*;

fn version(number: u64) -> Version {
    Version::from(number)
}

fn held(uid: &str, number: u64) -> Held {
    let mut header = Header::new(Key::new(None, "a"), version(number));
    header.uid = Some(Uid::from(uid));
    Held { header, value: Arc::new(()) }
}

fn at(uid: &str, number: u64) -> Note {
    Note::At { version: version(number), object: Some(held(uid, number)) }
}

fn gone(uid: &str, known: u64) -> Note {
    Note::Gone { uid: Uid::from(uid), known: version(known) }
}

/// What a note is worth when the cache is at a position and shows an object.
fn judge(note: &Note, position: &str, object: Option<(&str, &str)>) -> Verdict {
    let position = Version::from(position);
    let object = object.map(|(uid, version)| (Uid::from(uid), Version::from(version)));
    let object = object.as_ref().map(|(uid, version)| (Some(uid), version));
    note.judge(Shown { position: Some(&position), object })
}

#[test]
fn a_write_counts_until_the_object_or_the_position_has_passed_it() {
    let note = at("u", 10);
    assert_eq!(judge(&note, "9", None), Verdict::Note);
    assert_eq!(judge(&note, "9", Some(("u", "8"))), Verdict::Note);
    assert_eq!(judge(&note, "9", Some(("old", "8"))), Verdict::Note);
    assert_eq!(judge(&note, "9", Some(("u", "10"))), Verdict::Cache, "in the middle of a new snapshot");
    assert_eq!(judge(&note, "12", Some(("u", "12"))), Verdict::Cache);
    assert_eq!(judge(&note, "12", None), Verdict::Cache, "somebody deleted it");
    assert_eq!(
        judge(&note, "10", Some(("u", "8"))),
        Verdict::Cache,
        "the cache does not select the new state"
    );
}

#[test]
fn a_deleted_incarnation_is_hidden_until_the_cache_is_past_it() {
    let note = gone("u", 10);
    assert_eq!(judge(&note, "12", Some(("u", "10"))), Verdict::Note);
    assert_eq!(judge(&note, "9", None), Verdict::Note, "it may still come");
    assert_eq!(judge(&note, "10", None), Verdict::Cache, "it came and went");
    assert_eq!(judge(&note, "9", Some(("older", "5"))), Verdict::Note);
    assert_eq!(judge(&note, "9", Some(("newer", "12"))), Verdict::Cache);
}

#[test]
fn what_cannot_be_compared_is_asked_of_the_api() {
    let opaque: Note = Note::At { version: Version::from("x-10"), object: None };
    assert_eq!(judge(&opaque, "x-12", None), Verdict::Live);
    assert_eq!(judge(&opaque, "x-12", Some(("u", "x-9"))), Verdict::Live);
    assert_eq!(judge(&opaque, "x-12", Some(("u", "x-10"))), Verdict::Cache, "equal is equal");
    assert_eq!(judge(&at("u", 10), "x", None), Verdict::Live);
    assert_eq!(judge(&gone("u", 10), "x", Some(("v", "x"))), Verdict::Live);
    assert_eq!(judge(&gone("u", 10), "x", Some(("u", "x"))), Verdict::Note, "the uid tells");
    assert_eq!(judge(&Note::Doubt { at: None }, "99", Some(("u", "99"))), Verdict::Live);
    assert_eq!(judge(&Note::Doubt { at: Some(version(10)) }, "9", None), Verdict::Live);
    assert_eq!(judge(&Note::Doubt { at: Some(version(10)) }, "10", None), Verdict::Cache);
}

#[test]
fn answers_may_overtake_each_other() {
    let key = Key::new(None, "a");
    let last = |notes: Vec<Note>| {
        let mut overlay = Overlay::default();
        for note in notes {
            overlay.put(key.clone(), note);
        }
        overlay.get(&key).unwrap()
    };
    assert!(
        matches!(last(vec![at("u", 12), at("u", 10)]), Note::At { version, .. } if version == self::version(12))
    );
    assert!(matches!(last(vec![gone("u", 12), at("u", 10)]), Note::Gone { .. }));
    assert!(matches!(last(vec![gone("u", 12), at("v", 14)]), Note::At { .. }));
    assert!(matches!(last(vec![at("v", 14), gone("u", 12)]), Note::At { .. }));
    assert!(matches!(last(vec![at("u", 12), gone("u", 12)]), Note::Gone { .. }));
    let doubt = |at: u64| Note::Doubt { at: Some(version(at)) };
    assert!(matches!(last(vec![at("u", 12), doubt(11)]), Note::At { .. }));
    assert!(matches!(last(vec![at("u", 12), doubt(13)]), Note::Doubt { .. }));
}

#[test]
fn the_memory_has_an_end_and_a_floor_remains() {
    let mut overlay = Overlay::default();
    for number in 0..3 * MAX_NOTES as u64 {
        if overlay.put(Key::new(None, &number.to_string()), at("u", number)) {
            overlay.sweep(|_, _| false);
        }
        assert!(overlay.notes.len() < MAX_NOTES + 1);
    }
    let floor = overlay.floor().unwrap().number().unwrap();
    let newest = 3 * MAX_NOTES as u64 - 1;
    assert!(overlay.get(&Key::new(None, &newest.to_string())).is_some());
    for number in 0..=newest {
        let kept = overlay.get(&Key::new(None, &number.to_string())).is_some();
        assert!(kept || number <= floor, "{number} is forgotten and not below {floor}");
    }
    overlay.sweep(|_, _| true);
    assert!(overlay.notes.is_empty());
}
