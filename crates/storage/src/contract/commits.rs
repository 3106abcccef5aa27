use futures_util::FutureExt;
use futures_util::future::join_all;

use super::{Kept, Promise};
use crate::{Commit, Error, Revision, Storage};

pub(super) async fn every_change_takes_a_revision(storage: &dyn Storage) -> Kept {
    let promise = Promise("every change takes a revision, and nothing else does");
    let base = promise.base(storage).await?;
    let mut last = base;
    for _ in 0..5 {
        let revision = promise.commit(storage, Commit::new().put("/a", "x")).await?;
        promise.follows(storage, "the revision of a put", revision, last)?;
        last = revision;
    }
    let nothing = promise.commit(storage, Commit::new().delete("/b").delete("/c")).await?;
    promise.reaches(storage, "the revision of deleting what is not there", nothing, last)?;
    let conflict = storage.commit(Commit::new().absent("/a").put("/a", "y")).await;
    promise.equal("a failed commit succeeded", conflict.is_err(), true)?;
    let deleted = promise.commit(storage, Commit::new().delete("/a").delete("/b")).await?;
    promise.follows(storage, "the revision of a delete", deleted, last)?;
    let found = promise.works(storage.get("/a", None).await)?;
    promise.reaches(storage, "the revision of a read", found.revision, deleted)?;
    Ok(promise.0)
}

pub(super) async fn a_commit_is_a_whole(storage: &dyn Storage) -> Kept {
    let promise = Promise("all operations of a commit share one revision, or none happens");
    let first = promise.commit(storage, Commit::new().put("/a", "1").put("/b", "1")).await?;
    let commit = Commit::new().unchanged("/a", first).absent("/c").delete("/a").put("/b", "2").put("/c", "2");
    let committed = promise.works(storage.commit(commit).await)?;
    let previous: Vec<_> =
        committed.previous.iter().map(|entry| entry.as_ref().map(|entry| entry.modified)).collect();
    promise.equal("what was there before", previous, vec![Some(first), Some(first), None])?;
    let pairs = |list: &[(&str, &str)]| -> Vec<(String, Vec<u8>)> {
        list.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect()
    };
    let after = pairs(&[("/b", "2"), ("/c", "2")]);
    promise.equal("the state after", promise.list(storage, "/", None).await?, after.clone())?;
    promise.equal(
        "the state before",
        promise.list(storage, "/", Some(first)).await?,
        pairs(&[("/a", "1"), ("/b", "1")]),
    )?;
    let failing = Commit::new()
        .unchanged("/b", committed.revision)
        .absent("/c")
        .put("/b", "3")
        .delete("/c")
        .put("/d", "3");
    promise.equal("a failed commit succeeded", storage.commit(failing).await.is_err(), true)?;
    promise.equal("the state after a failed commit", promise.list(storage, "/", None).await?, after)?;
    let third = promise.commit(storage, Commit::new().put("/b", "4")).await?;
    let entry = promise.works(storage.get("/b", None).await)?.entry;
    let revisions = entry.map(|entry| (entry.created, entry.modified));
    promise.equal("created and modified", revisions, Some((first, third)))?;
    promise.commit(storage, Commit::new().delete("/b")).await?;
    let fifth = promise.commit(storage, Commit::new().put("/b", "5")).await?;
    let entry = promise.works(storage.get("/b", None).await)?.entry;
    let revisions = entry.map(|entry| (entry.created, entry.modified));
    promise.equal("created and modified in another life", revisions, Some((fifth, fifth)))?;
    Ok(promise.0)
}

pub(super) async fn preconditions_show_what_is_in_the_way(storage: &dyn Storage) -> Kept {
    let promise = Promise("a failed precondition gives the entry that is in the way");
    let first = promise.commit(storage, Commit::new().put("/a", "1")).await?;
    let second = promise.commit(storage, Commit::new().put("/b", "1")).await?;
    for (commit, key, modified) in [
        (Commit::new().absent("/a"), "/a", Some(first)),
        (Commit::new().unchanged("/a", first).unchanged("/b", first), "/b", Some(second)),
        (Commit::new().unchanged("/c", first).absent("/a"), "/c", None),
        (Commit::new().unchanged("/c", 0), "/c", None),
    ] {
        match storage.commit(commit.put("/z", "1")).await {
            Err(Error::Conflict { key: seen, current, revision }) => {
                let seen = (seen.as_str(), current.map(|entry| entry.modified));
                promise.equal("the conflict", seen, (key, modified))?;
                promise.reaches(storage, "the revision of the conflict", revision, second)?;
            }
            other => return promise.violated(format!("{key}: {other:?}")),
        }
    }
    promise.commit(storage, Commit::new().unchanged("/a", first).absent("/z").delete("/b")).await?;
    Ok(promise.0)
}

pub(super) async fn senseless_commits_are_refused(storage: &dyn Storage) -> Kept {
    let promise = Promise("a commit that makes no sense is refused");
    for commit in [
        Commit::new(),
        Commit::new().absent("/a"),
        Commit::new().put("", "1"),
        Commit::new().put("/a", "1").delete("/a"),
    ] {
        match storage.commit(commit).await {
            Err(Error::Invalid(_)) => {}
            other => return promise.violated(format!("{other:?}")),
        }
    }
    Ok(promise.0)
}

pub(super) async fn concurrent_commits_do_not_overwrite_each_other(storage: &dyn Storage) -> Kept {
    let promise = Promise("of concurrent commits with the same precondition one succeeds");
    let base = promise.base(storage).await?;
    promise.commit(storage, Commit::new().put("/counter", "0")).await?;
    let count = async || {
        let mut conflicts = 0;
        for _ in 0..10 {
            loop {
                let found = promise.works(storage.get("/counter", None).await)?;
                let Some(entry) = found.entry else {
                    return promise.violated("the counter vanished");
                };
                let next = String::from_utf8_lossy(&entry.value).parse().unwrap_or(0) + 1;
                let commit = Commit::new()
                    .unchanged("/counter", entry.modified)
                    .put("/counter", u64::to_string(&next));
                match storage.commit(commit).await {
                    Ok(_) => break,
                    Err(Error::Conflict { .. }) => conflicts += 1,
                    Err(error) => return promise.violated(error.to_string()),
                }
            }
        }
        Ok(conflicts)
    };
    for result in join_all((0..8).map(|_| count())).await {
        result?;
    }
    let found = promise.works(storage.get("/counter", None).await)?;
    let value = found.entry.map(|entry| entry.value.to_vec());
    promise.equal("the counter", value, Some(b"80".to_vec()))?;
    promise.reaches(storage, "the revision", found.revision, base + 81)?;
    Ok(promise.0)
}

pub(super) async fn a_dropped_commit_happens_as_a_whole_or_not_at_all(storage: &dyn Storage) -> Kept {
    let promise = Promise("a commit that is dropped half-way happens as a whole or not at all");
    let base = promise.base(storage).await?;
    let mut watch = promise.works(storage.watch("/", base).await)?;
    for round in 0..50 {
        let (left, right) = (format!("/left/{round}"), format!("/right/{round}"));
        let mut commit = storage.commit(Commit::new().put(left, "1").put(right, "1"));
        if round % 2 == 0 {
            let _ = (&mut commit).now_or_never();
        }
        drop(commit);
        promise.commit(storage, Commit::new().put("/barrier", "1")).await?;
    }
    let (events, _) = promise.told(&mut watch).await?;
    let of = |side: &str| -> Vec<(String, Revision)> {
        let events =
            events.iter().filter_map(|event| Some((event.key().strip_prefix(side)?, event.revision)));
        events.map(|(round, revision)| (round.to_owned(), revision)).collect()
    };
    promise.equal("the two sides", of("/left/"), of("/right/"))?;
    let unpolled =
        of("/left/").into_iter().find(|(round, _)| round.parse().is_ok_and(|round: u32| round % 2 == 1));
    promise.equal("what was never polled", unpolled, None)?;
    Ok(promise.0)
}
