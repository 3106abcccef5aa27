use std::collections::BTreeMap;

use super::{Kept, Promise};
use crate::{Commit, Error, Range, Storage};

pub(super) async fn a_read_at_a_revision_is_that_snapshot(storage: &dyn Storage) -> Kept {
    let promise = Promise("a read at a revision is exactly that snapshot");
    let base = promise.base(storage).await?;
    let mut model = BTreeMap::new();
    let mut snapshots = vec![(base, model.clone())];
    for step in 0..300_usize {
        let key = format!("/{}", step * 7 % 13);
        let commit = match step % 5 {
            4 if model.contains_key(&key) => {
                model.remove(&key);
                Commit::new().delete(key)
            }
            _ => {
                model.insert(key.clone(), step.to_string().into_bytes());
                Commit::new().put(key, step.to_string())
            }
        };
        let revision = promise.commit(storage, commit).await?;
        // What others use up in between changes nothing here.
        let last = snapshots.last().map_or(base, |(last, _)| *last);
        if let Some((_, before)) = snapshots.last().filter(|_| revision > last + 1) {
            snapshots.push((revision - 1, before.clone()));
        }
        snapshots.push((revision, model.clone()));
    }
    // Backwards, forwards and mixed: however the past is kept, the way to it must not matter.
    let mixed = (0..snapshots.len()).map(|step| step * 101 % snapshots.len());
    for step in (0..snapshots.len()).rev().chain(mixed) {
        let (revision, snapshot) = &snapshots[step];
        let revision = *revision;
        let expected: Vec<_> = snapshot.clone().into_iter().collect();
        let seen = promise.list(storage, "/", Some(revision)).await?;
        promise.equal(&format!("the list at revision {revision}"), seen, expected)?;
        let found = promise.works(storage.get("/0", Some(revision)).await)?;
        let value = found.entry.map(|entry| entry.value.to_vec());
        promise.equal("a key", value.as_ref(), snapshot.get("/0"))?;
        promise.equal("the revision of the answer", found.revision, revision)?;
    }
    Ok(promise.0)
}

pub(super) async fn pages_of_a_list_fit_together(storage: &dyn Storage) -> Kept {
    let promise = Promise("pages of one list fit together while writes go on");
    for number in 0..100 {
        promise.commit(storage, Commit::new().put(format!("/a/{number:03}"), "1")).await?;
    }
    let last = promise.commit(storage, Commit::new().put("/b", "1")).await?;
    let expected = promise.list(storage, "/a/", None).await?;
    let mut seen = Vec::new();
    let mut range = Range::prefix("/a/").limit(7);
    let mut listed = None;
    loop {
        let page = promise.works(storage.range(range).await)?;
        promise.reaches(storage, "the revision of a page", page.revision, last)?;
        promise.equal("the revision of a page", page.revision, *listed.get_or_insert(page.revision))?;
        seen.extend(page.entries.iter().map(|entry| (entry.key.to_string(), entry.value.to_vec())));
        if let Some(remaining) = page.remaining {
            promise.equal("how many remain", remaining, 100 - seen.len())?;
        }
        promise.equal("whether there is more", page.more, seen.len() < 100)?;
        let Some(last) = page.entries.last().filter(|_| page.more) else {
            break;
        };
        range = Range::prefix("/a/").after(&last.key).at(page.revision).limit(7);
        let number = seen.len();
        let disturb = Commit::new()
            .put(format!("/a/{:03}", number + 1), "2")
            .delete(format!("/a/{:03}", (number + 50) % 100))
            .put(format!("/a/{number:03}x"), "2");
        promise.commit(storage, disturb).await?;
    }
    promise.equal("the pages together", seen, expected)?;
    Ok(promise.0)
}

pub(super) async fn a_range_is_what_lies_between_its_ends(storage: &dyn Storage) -> Kept {
    let promise = Promise("a range holds what lies between its ends, in the order of bytes");
    for key in ["/a", "/a/", "/a/1", "/a/é", "/a/z", "/a0", "/b", "0"] {
        promise.commit(storage, Commit::new().put(key, "1")).await?;
    }
    for (range, expected) in [
        (Range::prefix("/a/"), &["/a/", "/a/1", "/a/z", "/a/é"][..]),
        (Range::prefix("/a/").after("/a/1"), &["/a/z", "/a/é"]),
        (Range::prefix("/a/").after("/a"), &["/a/", "/a/1", "/a/z", "/a/é"]),
        (Range::prefix("/a/").after("/b"), &[]),
        (Range::prefix("/c"), &[]),
        (Range::prefix("").limit(2), &["/a", "/a/"]),
        (Range::prefix("").limit(0), &[]),
        (Range::between("/a/1", "/a0"), &["/a/1", "/a/z", "/a/é"]),
        (Range::between("/a0", "/a/1"), &[]),
    ] {
        let page = promise.works(storage.range(range.clone()).await)?;
        let keys: Vec<&str> = page.entries.iter().map(|entry| &*entry.key).collect();
        promise.equal(&format!("{range:?}"), keys, expected.to_vec())?;
    }
    Ok(promise.0)
}

pub(super) async fn forgotten_and_future_revisions_are_refused(storage: &dyn Storage) -> Kept {
    let promise = Promise("forgotten and future revisions are refused");
    let base = promise.base(storage).await?;
    let mut revisions = vec![base];
    for value in 0..10 {
        revisions.push(promise.commit(storage, Commit::new().put("/a", value.to_string())).await?);
    }
    let last = revisions[10];
    promise.works(storage.compact(revisions[6]).await)?;
    promise.works(storage.compact(revisions[3]).await)?;
    let future = Promise::future(storage, last);
    let is_current = |current| promise.reaches(storage, "the newest revision", current, last).is_ok();
    for step in [0, 5, 6, 10, 11] {
        let at = revisions.get(step).copied().unwrap_or(future);
        let answers = [
            storage.get("/a", Some(at)).await.map(drop),
            storage.range(Range::prefix("/").at(at)).await.map(drop),
            storage.watch("/", at).await.map(drop),
        ];
        for answer in answers {
            match (step, answer) {
                (0 | 5, Err(Error::Compacted { oldest })) if oldest == revisions[6] => {}
                (11, Err(Error::Future { current })) if is_current(current) => {}
                (6 | 10, Ok(())) => {}
                (_, answer) => return promise.violated(format!("at {at}: {answer:?}")),
            }
        }
    }
    match storage.compact(future).await {
        Err(Error::Future { current }) if is_current(current) => {}
        other => return promise.violated(format!("compacting the future: {other:?}")),
    }
    promise.works(storage.compact(last).await)?;
    let expected = vec![("/a".to_owned(), b"9".to_vec())];
    promise.equal("the present", promise.list(storage, "/", Some(last)).await?, expected)?;
    Ok(promise.0)
}
