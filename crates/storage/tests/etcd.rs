//! What becomes of a storage in etcd when etcd misbehaves, and when several processes share it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::timeout;
use watchkeeper_etcd::testing::{Proxy, Server};
use watchkeeper_etcd::{Client, Keys, Put, Range as EtcdRange};
use watchkeeper_storage::{Commit, Error, Etcd, EtcdOptions, Options, Range, Storage, Update, Watch};
use watchkeeper_supervision::Supervisor;

/// How long anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn options() -> EtcdOptions {
    EtcdOptions { timeout: LONG, compaction_interval: None, ..EtcdOptions::default() }
}

async fn open(client: Client) -> Etcd {
    Etcd::open(client, options(), Options::default()).await.unwrap()
}

async fn put(storage: &Etcd, key: &str, value: &str) -> u64 {
    storage.commit(Commit::new().put(key, value.to_owned())).await.unwrap().revision
}

async fn value(storage: &Etcd, key: &str) -> Option<String> {
    let entry = storage.get(key, None).await.unwrap().entry?;
    Some(String::from_utf8(entry.value.to_vec()).unwrap())
}

/// The next change of a watch, as the key and the revision.
async fn next(watch: &mut Watch) -> Result<(String, u64), Error> {
    loop {
        match timeout(LONG, watch.next()).await.expect("nothing was told").expect("the watch is over")? {
            Update::Event(event) => return Ok((event.key().to_owned(), event.revision)),
            Update::Progress(_) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_has_written_the_others_read_at_once() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let (one, other) =
        (open(server.builder().build().unwrap()).await, open(server.builder().build().unwrap()).await);
    let stranger = server.builder().build().unwrap();
    let mut watch = other.watch("/a", other.stats().revision).await.unwrap();
    for round in 0..50 {
        // Revisions that are nobody's are left out, and waited for no longer than they take.
        stranger.put(&Put::new("/elsewhere", "x")).await.unwrap();
        let revision = put(&one, "/a", &round.to_string()).await;
        assert_eq!(value(&other, "/a").await, Some(round.to_string()));
        assert_eq!(next(&mut watch).await.unwrap(), ("/a".to_owned(), revision));
        let seen = other.get("/a", Some(revision)).await.unwrap();
        assert_eq!(seen.entry.unwrap().modified, revision);
    }
    stranger.put(&Put::new("/elsewhere", "y")).await.unwrap();
    assert_eq!(value(&other, "/a").await, Some("49".to_owned()));
    let current = one.get("/a", None).await.unwrap().revision;
    assert!(matches!(one.get("/a", Some(current + 1)).await, Err(Error::Future { .. })));
    // One that starts now can tell what happened a while ago.
    let late = open(server.builder().build().unwrap()).await;
    let mut watch = late.watch("/a", current - 20).await.unwrap();
    assert!(next(&mut watch).await.unwrap().1 > current - 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_for_some_time_goes_by_itself() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let direct = server.builder().build().unwrap();
    let storage = open(server.builder().build().unwrap()).await;
    assert!(storage.expires());
    let lifetime = Duration::from_secs(40);
    let lease = async |key: &str| {
        let found = direct.range(&EtcdRange::of(Keys::one(format!("/watchkeeper{key}")))).await.unwrap();
        found.kvs[0].lease
    };
    let write = async |key: &str, lifetime| {
        storage
            .commit(Commit::new().put_for(key, "1", lifetime).put(format!("{key}-kept"), "1"))
            .await
            .unwrap()
    };
    write("/a", lifetime).await;
    write("/b", lifetime).await;
    let shared = lease("/a").await;
    assert!(shared != 0, "without a lease, it stays");
    assert_eq!(lease("/b").await, shared, "a lease for each is dear");
    assert_eq!(lease("/a-kept").await, 0);
    // What is written again, for as long as it takes, stays.
    put(&storage, "/b", "2").await;
    let revision = storage.stats().revision;
    let mut watch = storage.watch("/", revision).await.unwrap();
    // As when it runs out.
    direct.lease_revoke(shared).await.unwrap();
    assert_eq!(next(&mut watch).await.unwrap(), ("/a".to_owned(), revision + 1));
    assert_eq!(value(&storage, "/a").await, None);
    assert_eq!(value(&storage, "/b").await.as_deref(), Some("2"));
    // A lease that is gone is replaced.
    write("/c", lifetime).await;
    let second = lease("/c").await;
    assert!(second != 0 && second != shared);
    // By itself, in the end; what has another lifetime has another lease.
    let written = write("/d", Duration::from_secs(1)).await;
    assert!(lease("/d").await != second);
    let mut watch = storage.watch("/d", written.revision).await.unwrap();
    assert_eq!(next(&mut watch).await.unwrap().0, "/d");
    assert_eq!(value(&storage, "/d").await, None);
    assert_eq!(value(&storage, "/c").await.as_deref(), Some("1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_outlive_an_etcd_that_is_killed_and_comes_back() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let storage = open(server.builder().timeout(Duration::from_secs(1)).build().unwrap()).await;
    let first = put(&storage, "/a", "1").await;
    let mut watch = storage.watch("/", first).await.unwrap();
    server.kill();
    let failed = timeout(LONG, storage.commit(Commit::new().put("/a", "2"))).await.unwrap();
    assert!(matches!(failed, Err(Error::Unavailable { .. } | Error::Unknown { .. })), "{failed:?}");
    assert!(matches!(storage.get("/a", None).await, Err(Error::Unavailable { .. })));
    // What is known is known.
    assert_eq!(storage.get("/a", Some(first)).await.unwrap().entry.unwrap().modified, first);
    timeout(LONG, async {
        while storage.trouble().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("nobody noticed");
    server.restart().await.unwrap();
    let second = loop {
        match storage.commit(Commit::new().put("/a", "3")).await {
            Ok(committed) => break committed.revision,
            Err(Error::Unavailable { .. } | Error::Unknown { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    let mut told = next(&mut watch).await.unwrap();
    // Attempts whose outcome was not known may have happened.
    while told.1 < second {
        told = next(&mut watch).await.unwrap();
    }
    assert_eq!(told, ("/a".to_owned(), second));
    assert_eq!(value(&storage, "/a").await.as_deref(), Some("3"));
    assert_eq!(storage.trouble(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_are_told_if_what_they_missed_is_compacted() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let proxy = Proxy::to(server.port()).await.unwrap();
    let storage = open(Client::builder([proxy.endpoint()]).build().unwrap()).await;
    let direct = server.builder().build().unwrap();
    let first = put(&storage, "/a", "1").await;
    let mut watch = storage.watch("/", first).await.unwrap();
    proxy.refuse(true);
    let mut last = 0;
    for round in 0..10 {
        last = direct.put(&Put::new("/watchkeeper/b", round.to_string())).await.unwrap().header.revision;
    }
    direct.compact(last, true).await.unwrap();
    proxy.refuse(false);
    match next(&mut watch).await {
        Err(Error::Lagged { oldest }) => assert!(oldest >= u64::try_from(last).unwrap()),
        other => panic!("{other:?}"),
    }
    assert_eq!(value(&storage, "/b").await.as_deref(), Some("9"));
    assert!(matches!(storage.watch("/", first).await, Err(Error::Compacted { .. })));
    let now = storage.stats().revision;
    let mut watch = storage.watch("/", now).await.unwrap();
    let again = put(&storage, "/a", "2").await;
    assert_eq!(next(&mut watch).await.unwrap(), ("/a".to_owned(), again));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_backup_is_noticed() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let storage = open(server.builder().build().unwrap()).await;
    for round in 0..20 {
        put(&storage, "/a", &round.to_string()).await;
    }
    let revision = storage.stats().revision;
    let mut watch = storage.watch("/", revision).await.unwrap();
    server.kill();
    server.begin_anew().await.unwrap();
    assert!(matches!(next(&mut watch).await, Err(Error::Lagged { .. })));
    assert_eq!(value(&storage, "/a").await, None);
    assert!(put(&storage, "/a", "new").await < revision);
    assert_eq!(value(&storage, "/a").await.as_deref(), Some("new"));
    assert!(matches!(storage.get("/a", Some(revision)).await, Err(Error::Future { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_without_an_answer_is_recognised_or_its_outcome_is_unknown() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let proxy = Proxy::to(server.port()).await.unwrap();
    let client = Client::builder([proxy.endpoint()]).timeout(Duration::from_secs(1)).build().unwrap();
    let storage = open(client).await;
    let mut known = put(&storage, "/a", "0").await;
    let (mut recognised, mut unknown) = (0, 0);
    for round in 1..=4 {
        proxy.mute(true);
        let commit = Commit::new().unchanged("/a", known).put("/a", round.to_string());
        let (answer, ()) = tokio::join!(timeout(LONG, storage.commit(commit)), async {
            // In every other round etcd can be asked again before all patience is spent.
            tokio::time::sleep(Duration::from_millis(if round % 2 == 0 { 300 } else { 1500 })).await;
            proxy.cut();
            proxy.mute(false);
        });
        match answer.unwrap() {
            Ok(committed) => {
                recognised += 1;
                known = committed.revision;
            }
            Err(Error::Unknown { .. }) => unknown += 1,
            Err(error) => panic!("{error}"),
        }
        // Whatever was said, what there is is told from now on.
        let entry = loop {
            match storage.get("/a", None).await {
                Ok(found) => break found.entry.unwrap(),
                Err(Error::Unavailable { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert!(entry.modified >= known);
        known = entry.modified;
    }
    assert_eq!(recognised + unknown, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_database_is_said_to_be_full_and_still_read() {
    let Some(server) = Server::with(&["--quota-backend-bytes", "2000000"]).await.unwrap() else { return };
    let storage = open(server.builder().build().unwrap()).await;
    put(&storage, "/a", "1").await;
    let mut refused = None;
    for round in 0..200 {
        let large = vec![b'x'; 100_000];
        match storage.commit(Commit::new().put(format!("/large/{round}"), large)).await {
            Ok(_) => {}
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    assert!(matches!(refused, Some(Error::Full { .. })), "{refused:?}");
    assert!(storage.stats().cluster.unwrap().full.is_some());
    // Others hear of it, too, although they write nothing.
    let other = open(server.builder().build().unwrap()).await;
    let alarm = async {
        loop {
            match other.stats().cluster.unwrap().full {
                Some(reason) => return reason,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let alarm = timeout(LONG, alarm).await.expect("it is not told");
    assert!(alarm.contains("NOSPACE"), "{alarm}");
    assert_eq!(value(&storage, "/a").await.as_deref(), Some("1"));
    assert!(!storage.range(Range::prefix("/large/")).await.unwrap().entries.is_empty());
    storage.commit(Commit::new().delete("/a")).await.unwrap();
    // What the book says to do: delete, compact, defragment, take the alarm back.
    let client = server.builder().build().unwrap();
    let large = storage.range(Range::prefix("/large/")).await.unwrap().entries;
    let mut last = 0;
    for entry in large {
        last = storage.commit(Commit::new().delete(entry.key.clone())).await.unwrap().revision;
    }
    client.compact(i64::try_from(last).unwrap(), true).await.unwrap();
    client.defragment().await.unwrap();
    let member = client.status().await.unwrap().header.member;
    client.disarm_no_space(member).await.unwrap();
    put(&storage, "/a", "again").await;
    assert_eq!(value(&storage, "/a").await.as_deref(), Some("again"));
    let disarmed = async {
        while storage.stats().cluster.unwrap().full.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, disarmed).await.expect("it is still said to be full");
}

/// Waits as long as etcd cannot be asked, and says how long that took.
async fn patiently<T>(mut ask: impl AsyncFnMut() -> Result<T, Error>) -> (T, Duration) {
    let begin = tokio::time::Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return (answer, begin.elapsed()),
            Err(Error::Unavailable { .. } | Error::Unknown { .. }) if begin.elapsed() < LONG => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A member that is stopped, or behind a network that swallows everything, closes no connection. Pings would notice after 40 seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_falls_silent_is_left_for_another_within_seconds() {
    let Some(members) = Server::cluster(3, &[]).await.unwrap() else { return };
    let mut proxies = Vec::new();
    for member in &members {
        proxies.push(Proxy::to(member.port()).await.unwrap());
    }
    let client = Client::builder(proxies.iter().map(Proxy::endpoint)).build().unwrap();
    let default = EtcdOptions { compaction_interval: None, ..EtcdOptions::default() };
    let storage = Etcd::open(client, default, Options::default()).await.unwrap();
    // Whatever it is connected to falls silent, and what was silent before is not any more. One member is always left.
    let silence = || {
        let used: Vec<bool> = proxies.iter().map(|proxy| proxy.connections() > 0).collect();
        let mut left = proxies.len() - 1;
        for (proxy, used) in proxies.iter().zip(used) {
            let mute = used && left > 0;
            left -= usize::from(mute);
            proxy.mute(mute);
        }
    };
    let other = open(members[1].builder().build().unwrap()).await;
    let first = put(&storage, "/a", "0").await;
    let mut watch = storage.watch("/", first).await.unwrap();
    // Nobody but a watcher waits for anything.
    silence();
    let begin = tokio::time::Instant::now();
    let second = put(&other, "/a", "1").await;
    assert_eq!(next(&mut watch).await.unwrap(), ("/a".to_owned(), second));
    let told = begin.elapsed();
    // The next one is silent, too: somebody reads, then somebody writes.
    silence();
    put(&other, "/a", "2").await;
    let (read, reading) = patiently(async || storage.get("/a", None).await).await;
    assert_eq!(read.entry.unwrap().value, "2");
    silence();
    let (_, writing) = patiently(async || storage.commit(Commit::new().put("/a", "3")).await).await;
    println!("a silent member: watchers waited {told:?}, readers {reading:?}, writers {writing:?}");
    assert!(told.max(reading).max(writing) < Duration::from_secs(15), "{told:?} {reading:?} {writing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_before_a_restore_is_not_shown_as_the_present() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let supervisor = Supervisor::default();
    let supervised = EtcdOptions { supervisor: supervisor.clone(), ..options() };
    let client = server.builder().build().unwrap();
    let storage = Etcd::open(client, supervised, Options::default()).await.unwrap();
    put(&storage, "/a", "backed up").await;
    server.kill();
    let backup = server.back_up().unwrap();
    server.restart().await.unwrap();
    for _ in 0..20 {
        patiently(async || storage.commit(Commit::new().put("/a", "lost")).await).await;
    }
    let (lost, epoch) = (storage.stats().revision, storage.epoch());
    // Until everything has been read again, nobody knows what there is.
    supervisor.break_down("etcd-feed");
    server.kill();
    server.restore(&backup).unwrap();
    server.restart().await.unwrap();
    let refused = loop {
        match storage.get("/a", None).await {
            Err(Error::Unavailable { reason }) if reason.contains("restored") => break reason,
            // etcd is not back yet.
            Err(Error::Unavailable { .. }) => {}
            other => panic!("{other:?}"),
        }
    };
    assert!(refused.contains(&lost.to_string()), "{refused}");
    supervisor.mend("etcd-feed");
    let (read, _) = patiently(async || storage.get("/a", None).await).await;
    assert_eq!(read.entry.unwrap().value, "backed up");
    assert!(storage.epoch() > epoch, "revisions mean something else now");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_is_noticed_although_more_was_written_since() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let proxy = Proxy::to(server.port()).await.unwrap();
    let direct = server.builder().build().unwrap();
    let storage = open(Client::builder([proxy.endpoint()]).build().unwrap()).await;
    put(&storage, "/a", "backed up").await;
    server.kill();
    let backup = server.back_up().unwrap();
    server.restart().await.unwrap();
    patiently(async || storage.commit(Commit::new().put("/b", "lost")).await).await;
    let lost = storage.stats().revision;
    let mut watch = storage.watch("/", lost).await.unwrap();
    proxy.refuse(true);
    server.kill();
    server.restore(&backup).unwrap();
    server.restart().await.unwrap();
    loop {
        let written = direct.put(&Put::new("/watchkeeper/c", "new")).await.unwrap();
        if u64::try_from(written.header.revision).unwrap() > lost + 5 {
            break;
        }
    }
    proxy.refuse(false);
    assert!(matches!(next(&mut watch).await, Err(Error::Lagged { .. })), "its past is another one");
    let (read, _) = patiently(async || storage.get("/b", None).await).await;
    assert!(read.entry.is_none(), "{read:?}");
    assert_eq!(value(&storage, "/c").await.as_deref(), Some("new"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_leader_is_hardly_noticed() {
    let Some(members) = Server::cluster(3, &[]).await.unwrap() else { return };
    let endpoints: Vec<_> = members.iter().map(Server::endpoint).collect();
    let storage = open(Client::builder(endpoints).build().unwrap()).await;
    let first = put(&storage, "/a", "0").await;
    let mut watch = storage.watch("/", first).await.unwrap();
    let mut last = first;
    for round in 1..=6 {
        let direct = members[0].builder().build().unwrap();
        let (leader, all) = (direct.status().await.unwrap().leader, direct.members().await.unwrap());
        let to = all.iter().find(|member| member.id != leader).unwrap().id;
        for member in &members {
            // Only the one that leads does it.
            let _ = member.builder().build().unwrap().move_leader(to).await;
        }
        // A write that met the change may be in doubt; it is looked up.
        last = loop {
            match storage.commit(Commit::new().put("/a", round.to_string())).await {
                Ok(committed) => break committed.revision,
                Err(Error::Unavailable { .. } | Error::Unknown { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(value(&storage, "/a").await, Some(round.to_string()));
    }
    while next(&mut watch).await.unwrap().1 < last {}
}

/// What others are asked, they ask the leader, or hand on to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_member_that_leads_is_asked_also_when_it_is_another_one() {
    let Some(members) = Server::cluster(3, &[]).await.unwrap() else { return };
    let mut proxies = Vec::new();
    for member in &members {
        proxies.push(Proxy::to(member.port()).await.unwrap());
    }
    let asked: Vec<_> = members.iter().map(|member| member.builder().build().unwrap()).collect();
    // Which of the proxies is before the one that leads, by the number of the member.
    let leading = async || {
        timeout(LONG, async {
            loop {
                for (at, client) in asked.iter().enumerate() {
                    let status = client.status().await.unwrap();
                    if status.leader == status.header.member {
                        return (at, status.leader);
                    }
                }
            }
        })
        .await
        .expect("nobody leads")
    };
    let (first, _) = leading().await;
    // The endpoint that is tried first is one that follows.
    let endpoints = (1..=3).map(|step| proxies[(first + step) % 3].endpoint());
    let default = EtcdOptions { compaction_interval: None, may_lead: false, ..EtcdOptions::default() };
    let client = Client::builder(endpoints).build().unwrap();
    let storage = Etcd::open(client, default, Options::default()).await.unwrap();
    let connected = async |wanted: [usize; 3]| {
        let all = async {
            while [0, 1, 2].map(|at: usize| proxies[at].connections()) != wanted {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(LONG, all).await.unwrap_or_else(|_| panic!("never connected as in {wanted:?}"));
    };
    let mut wanted = [0; 3];
    wanted[first] = 1;
    connected(wanted).await;
    let begun = put(&storage, "/a", "0").await;
    let mut watch = storage.watch("/", begun).await.unwrap();
    connected(wanted).await;

    let second = (first + 1) % 3;
    let to = asked[second].status().await.unwrap().header.member;
    asked[first].move_leader(to).await.unwrap();
    // It is followed where it was, and asked there.
    wanted[second] = 1;
    connected(wanted).await;
    let (_, leader) = leading().await;
    assert_eq!(leader, to);
    let last = put(&storage, "/a", "1").await;
    assert_eq!(next(&mut watch).await.unwrap(), ("/a".to_owned(), last));
    assert_eq!(value(&storage, "/a").await.as_deref(), Some("1"));
    assert_eq!((storage.epoch(), storage.trouble()), (0, None));
    connected(wanted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_with_a_slow_disk_is_waited_for_and_not_for_ever() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let client = server.builder().timeout(Duration::from_secs(1)).build().unwrap();
    let options = EtcdOptions { timeout: Duration::from_secs(1), ..options() };
    let storage = Etcd::open(client, options, Options::default()).await.unwrap();
    let first = put(&storage, "/a", "1").await;
    let mut watch = storage.watch("/", first).await.unwrap();
    server.pause(true);
    let begin = tokio::time::Instant::now();
    let commit = storage.commit(Commit::new().unchanged("/a", first).put("/a", "2"));
    let (written, read) = tokio::join!(commit, storage.get("/a", None));
    assert!(matches!(written, Err(Error::Unknown { .. } | Error::Unavailable { .. })), "{written:?}");
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    assert!(begin.elapsed() < LONG / 2, "{:?}", begin.elapsed());
    assert!(storage.get("/a", Some(first)).await.is_ok(), "what is known is known");
    server.pause(false);
    let second = loop {
        match storage.get("/a", None).await {
            Ok(found) => break found.entry.unwrap(),
            Err(Error::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    // Whatever became of the write that was in doubt, it is told once.
    let third = storage.commit(Commit::new().unchanged("/a", second.modified).put("/a", "3")).await;
    let third = match third {
        Ok(committed) => committed.revision,
        Err(Error::Conflict { current, .. }) => {
            let current = current.unwrap();
            let commit = Commit::new().unchanged("/a", current.modified).put("/a", "3");
            storage.commit(commit).await.unwrap().revision
        }
        Err(error) => panic!("{error}"),
    };
    let mut told = Vec::new();
    while told.last() != Some(&third) {
        told.push(next(&mut watch).await.unwrap().1);
    }
    assert!(told.is_sorted_by(|one, other| one < other) && told.len() <= 2, "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_etcd_does_not_allow_is_refused_and_does_no_harm() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let storage = open(server.builder().build().unwrap()).await;
    let many = (0..200).fold(Commit::new(), |commit, key| commit.put(format!("/{key}"), "1"));
    assert!(matches!(storage.commit(many).await, Err(Error::TooLarge(_))));
    let large = Commit::new().put("/large", vec![0; 2 << 20]);
    let refused = storage.commit(large).await;
    assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
    put(&storage, "/a", "1").await;
    assert_eq!(storage.range(Range::prefix("/")).await.unwrap().entries.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_take_turns_to_compact() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let client = server.builder().build().unwrap();
    let interval = Some(Duration::from_millis(300));
    let mut storages = Vec::new();
    for _ in 0..3 {
        let options = EtcdOptions { compaction_interval: interval, ..options() };
        storages.push(Etcd::open(client.clone(), options, Options::default()).await.unwrap());
    }
    let old = put(&storages[0], "/a", "1").await;
    let compacted = async {
        loop {
            put(&storages[1], "/a", "2").await;
            let range = EtcdRange::of(Keys::one("/watchkeeper/a")).at(i64::try_from(old).unwrap());
            match client.range(&range).await {
                Err(error) if error.is_compacted() => return,
                Err(error) => panic!("{error}"),
                Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    timeout(LONG, compacted).await.expect("nobody compacted");
    // The mirrors remember what etcd has forgotten.
    assert_eq!(storages[2].get("/a", Some(old)).await.unwrap().entry.unwrap().modified, old);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_leads_and_another_after_it() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let first = open(server.builder().build().unwrap()).await;
    timeout(LONG, first.leadership().gained()).await.expect("nobody leads");
    let second = open(server.builder().build().unwrap()).await;
    let mut waiting = second.leadership();
    assert!(timeout(Duration::from_secs(5), waiting.gained()).await.is_err(), "two lead");
    // One that says that it goes is followed at once; it can still be read and written.
    first.retire().await;
    timeout(Duration::from_secs(12), waiting.gained()).await.expect("its lease has to run out");
    put(&first, "/a", "1").await;
    let third = open(server.builder().build().unwrap()).await;
    drop(second);
    timeout(LONG, third.leadership().gained()).await.expect("nobody follows one that is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_cannot_be_reached_is_said_to_be() {
    let client = Client::builder(["http://127.0.0.1:1"]).timeout(Duration::from_secs(1)).build().unwrap();
    let failed = Etcd::open(client, options(), Options::default()).await.err();
    assert!(matches!(failed, Some(Error::Unavailable { .. })), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_panics_goes_on_and_no_change_is_lost() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let supervisor = Supervisor::default();
    let supervised = EtcdOptions { supervisor: supervisor.clone(), ..options() };
    let one = Etcd::open(server.builder().build().unwrap(), supervised, Options::default()).await.unwrap();
    let other = open(server.builder().build().unwrap()).await;
    put(&other, "/a", "before").await;
    assert_eq!(value(&one, "/a").await.as_deref(), Some("before"));
    let mut watch = one.watch("/a", one.stats().revision).await.unwrap();
    supervisor.break_down("etcd-feed");
    let stopped = async {
        while one.trouble().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, stopped).await.expect("a mirror that is not fed says so");
    assert!(one.stats().halted.unwrap().contains("panicked"));
    put(&other, "/a", "meanwhile").await;
    supervisor.mend("etcd-feed");
    assert_eq!(value(&one, "/a").await.as_deref(), Some("meanwhile"));
    assert!(matches!(next(&mut watch).await, Err(Error::Lagged { .. })), "what was missed is not known");
    put(&other, "/a", "after").await;
    assert_eq!(value(&one, "/a").await.as_deref(), Some("after"));
    assert_eq!(one.trouble(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_task_panics_steps_back_and_stands_again() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let supervisor = Supervisor::default();
    let supervised = EtcdOptions { supervisor: supervisor.clone(), ..options() };
    let storage =
        Etcd::open(server.builder().build().unwrap(), supervised, Options::default()).await.unwrap();
    let mut leadership = storage.leadership();
    timeout(LONG, leadership.gained()).await.expect("nobody else stands");
    supervisor.inject("etcd-leadership");
    timeout(LONG, leadership.lost()).await.expect("it may have lost without a word");
    timeout(LONG, leadership.gained()).await.expect("the lease of before has run out");
}
