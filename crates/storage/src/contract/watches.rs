use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};

use super::{Kept, Promise};
use crate::{Commit, Error, Revision, Storage, Update};

pub(super) async fn a_watch_tells_everything_once_in_order(storage: &dyn Storage) -> Kept {
    let promise = Promise("a watch tells every change after its revision once, in order");
    let base = promise.base(storage).await?;
    let (mut expected, mut revisions): (Vec<(Revision, String)>, _) = (Vec::new(), vec![base]);
    for step in 0..40_u64 {
        let keys: Vec<_> = (0..=step % 3).map(|part| format!("/{}/{step}/{part}", step % 2)).collect();
        let commit = keys.iter().fold(Commit::new(), |commit, key| commit.put(&**key, "1"));
        let revision = promise.commit(storage, commit).await?;
        expected.extend(keys.into_iter().map(|key| (revision, key)));
        revisions.push(revision);
    }
    let last = revisions[40];
    for after in revisions {
        for prefix in ["/", "/1/", "/1/3", "/2/"] {
            let mut watch = promise.works(storage.watch(prefix, after).await)?;
            let (events, progress) = promise.told(&mut watch).await?;
            let seen: Vec<_> = events.iter().map(|event| (event.revision, event.key().to_owned())).collect();
            let wanted =
                expected.iter().filter(|(revision, key)| *revision > after && key.starts_with(prefix));
            promise.equal(&format!("{prefix} after {after}"), seen, wanted.cloned().collect())?;
            promise.reaches(storage, "the progress", progress, last)?;
        }
    }
    Ok(promise.0)
}

pub(super) async fn a_watch_follows_what_happens(storage: &dyn Storage) -> Kept {
    let promise = Promise("a watch that was opened before a change tells of it");
    let base = promise.base(storage).await?;
    let mut wide = promise.works(storage.watch("/", base).await)?;
    let mut narrow = promise.works(storage.watch("/a/1", base).await)?;
    let mut revisions = Vec::new();
    for step in 0..1000_u64 {
        revisions.push(promise.commit(storage, Commit::new().put(format!("/a/{}", step % 10), "1")).await?);
        // Sometimes waits for a single event, sometimes lets many gather.
        if step % 97 == 0 {
            let _ = wide.next().now_or_never();
        }
    }
    let (events, _) = promise.told(&mut narrow).await?;
    let seen: Vec<_> = events.iter().map(|event| event.revision).collect();
    promise.equal("the narrow watch", seen, revisions.iter().skip(1).step_by(10).copied().collect())?;
    let (events, progress) = promise.told(&mut wide).await?;
    promise.reaches(storage, "the progress", progress, revisions[999])?;
    let polled = 1000 - events.len();
    promise.equal("more was taken than polled for", polled <= 11, true)?;
    let seen: Vec<_> = events.iter().map(|event| event.revision).collect();
    promise.equal("the wide watch", seen, revisions[polled..].to_vec())?;
    Ok(promise.0)
}

pub(super) async fn an_event_has_both_sides_and_is_shared(storage: &dyn Storage) -> Kept {
    let promise = Promise("an event has the entry before and after, and all watchers share it");
    let base = promise.base(storage).await?;
    let mut watch = promise.works(storage.watch("/a", base).await)?;
    let first = promise.commit(storage, Commit::new().put("/a", "1")).await?;
    let second = promise.commit(storage, Commit::new().put("/a", "2")).await?;
    promise.commit(storage, Commit::new().delete("/a")).await?;
    let fourth = promise.commit(storage, Commit::new().put("/a", "3")).await?;
    let (events, _) = promise.told(&mut watch).await?;
    let side = |entry: Option<&Arc<crate::Entry>>| {
        entry.map(|entry| (entry.created, entry.modified, entry.value.to_vec()))
    };
    let seen: Vec<_> = events.iter().map(|event| (side(event.previous()), side(event.entry()))).collect();
    let at = |created, modified, value: &[u8]| (created, modified, value.to_vec());
    let (one, two, three) = (at(first, first, b"1"), at(first, second, b"2"), at(fourth, fourth, b"3"));
    let expected = vec![
        (None, Some(one.clone())),
        (Some(one), Some(two.clone())),
        (Some(two), None),
        (None, Some(three)),
    ];
    promise.equal("the events", seen, expected)?;
    let mut other = promise.works(storage.watch("/", base).await)?;
    let (others, _) = promise.told(&mut other).await?;
    let shared = events.len() == others.len()
        && events.iter().zip(&others).all(|(one, other)| Arc::ptr_eq(one, other));
    promise.equal("whether events are shared", shared, true)?;
    Ok(promise.0)
}

pub(super) async fn compaction_does_not_disturb_who_keeps_up(storage: &dyn Storage) -> Kept {
    let promise = Promise("compaction does not disturb a watcher that keeps up");
    let base = promise.base(storage).await?;
    let mut watch = promise.works(storage.watch("/", base).await)?;
    for _ in 0..50 {
        let revision = promise.commit(storage, Commit::new().put("/a", "1")).await?;
        let (events, _) = promise.told(&mut watch).await?;
        promise.equal("the events", events.iter().map(|event| event.revision).collect(), vec![revision])?;
        promise.works(storage.compact(revision).await)?;
    }
    Ok(promise.0)
}

pub(super) async fn a_slow_watcher_is_told_so(storage: &dyn Storage) -> Kept {
    const CHANGES: u64 = 20_000;
    let promise = Promise("a watcher that did not keep up is told so, after what it was told in order");
    let base = promise.base(storage).await?;
    let mut watch = promise.works(storage.watch("/", base).await)?;
    let mut revisions = Vec::new();
    for _ in 0..CHANGES / 100 {
        let commits = (0..100).map(|_| storage.commit(Commit::new().put("/a", "1")));
        for committed in futures_util::future::join_all(commits).await {
            revisions.push(promise.works(committed)?.revision);
        }
    }
    revisions.sort_unstable();
    let last = revisions.last().copied().unwrap_or(base);
    promise.works(storage.compact(last).await)?;
    let mut next = revisions.into_iter();
    loop {
        let expected = next.next();
        match watch.next().await {
            Some(Ok(Update::Event(event))) if expected == Some(event.revision) => {}
            Some(Err(Error::Lagged { oldest })) if oldest == last => break,
            other => return promise.violated(format!("before revision {expected:?}: {other:?}")),
        }
        if next.len() == 0 {
            return promise.violated("everything was kept in memory for it");
        }
    }
    promise.equal("whether the watch is over", watch.next().await.is_none(), true)?;
    Ok(promise.0)
}

pub(super) async fn progress_comes_after_everything_before_it(storage: &dyn Storage) -> Kept {
    let promise = Promise("progress comes after everything before it, once for each request");
    let base = promise.base(storage).await?;
    let mut watch = promise.works(storage.watch("/a/", base).await)?;
    promise.reaches(storage, "the progress of nothing", promise.told(&mut watch).await?.1, base)?;
    for _ in 0..20 {
        promise.commit(storage, Commit::new().put("/b", "1")).await?;
        let last = promise.commit(storage, Commit::new().put("/a/1", "1").put("/a/2", "1")).await?;
        watch.request_progress();
        let (events, revision) = promise.told(&mut watch).await?;
        promise.equal("the events before it", events.len(), 2)?;
        promise.reaches(storage, "the progress", revision, last)?;
        let more = watch.next().now_or_never();
        promise.equal("whether more is said", more.is_some(), false)?;
    }
    Ok(promise.0)
}
