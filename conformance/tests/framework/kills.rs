//! A server that is killed while a controller works, and comes back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_core::params::{ListParams, PostParams, VersionMatch};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use watchkeeper::client::{Client, Patch};
use watchkeeper::election::ElectionOptions;
use watchkeeper::informer::{Entry, Informer};
use watchkeeper::prelude::{Action, Arc, Context, Controller, Manager};
use watchkeeper::runtime::Running;
use watchkeeper::source::ChangeKind;
use watchkeeper::sources::kubernetes::Kubernetes;
use watchkeeper_testkit::fixtures::key;
use watchkeeper_testkit::{consistently, eventually};

use crate::kinds::{in_the_store, map, on_the_server, says};
use crate::on_both_servers;
use crate::place::Place;

on_both_servers!(
    no_change_is_lost_and_none_comes_twice_when_the_server_is_killed,
    at_most_one_candidate_leads_when_the_server_is_killed,
    a_version_that_was_seen_before_a_kill_is_known_after_it,
);

const MANY: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(120);

/// What the last reconcile of each map saw.
type Seen = Arc<Mutex<BTreeMap<String, String>>>;

fn noting(seen: &Seen) -> Controller {
    let seen = Arc::clone(seen);
    Controller::of::<ConfigMap>().reconcile(move |map: Arc<ConfigMap>, _cx: Context<ConfigMap>| {
        let says = says(&map).unwrap_or_default().to_owned();
        seen.lock().insert(map.metadata.name.clone().unwrap_or_default(), says);
        async { Ok(Action::done()) }
    })
}

/// Has a map say something, however often the server has to be asked.
async fn change(person: &Client, number: usize, says: &str) {
    let patch = Patch::Merge(serde_json::json!({"data": {"says": says}}));
    while person.patch::<ConfigMap>(&key(&format!("m{number}")), patch.clone()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn no_change_is_lost_and_none_comes_twice_when_the_server_is_killed(mut place: Place) {
    let (connection, judge) = (place.connection(), place.client());
    let person = Client::new(place.connection());
    for number in 0..MANY {
        person.create(&map(&format!("m{number}"), "before")).await.unwrap();
    }
    let seen = Seen::default();
    let manager = Manager::new("test", connection.clone()).controller(noting(&seen));
    let running = manager.start().await.unwrap();
    running.ready().await;
    let (journal, mut entries) = mpsc::channel(10_000);
    let informer = Informer::<ConfigMap>::builder()
        .journal(journal)
        .start(Kubernetes::of::<ConfigMap>(connection.clone()).namespace("default"));
    informer.synced().await.unwrap();

    let writer = {
        let person = person.clone();
        tokio::spawn(async move {
            for number in 0..MANY {
                change(&person, number, "after").await;
            }
        })
    };
    eventually(|| async { seen.lock().values().filter(|says| *says == "after").count() > MANY / 4 })
        .within(TIMEOUT)
        .await;
    place.kill();
    place.come_back();
    writer.await.unwrap();

    eventually(|| async {
        let missing = (0..MANY)
            .filter(|number| seen.lock().get(&format!("m{number}")).is_none_or(|says| says != "after"));
        match missing.count() {
            0 => Ok(()),
            missing => Err(format!("{missing} have not been reconciled")),
        }
    })
    .within(TIMEOUT)
    .await;
    let store = informer.store();
    eventually(|| async { on_the_server(&judge).await.is_ok_and(|server| server == in_the_store(&store)) })
        .within(TIMEOUT)
        .await;
    let mut added = BTreeMap::<_, usize>::new();
    while let Ok(entry) = entries.try_recv() {
        if let Entry::Changed(change) = entry
            && change.kind() != ChangeKind::Modified
        {
            *added.entry((format!("{:?}", change.kind()), change.key.name().to_owned())).or_default() += 1;
        }
    }
    assert!(added.len() >= MANY, "{added:?}");
    assert!(added.iter().all(|((kind, _), count)| kind == "Added" && *count == 1), "{added:?}");
    running.stop().await;
    informer.stop().await;
}

async fn candidate(place: &Place, name: &str) -> Running {
    let mut options = ElectionOptions::default();
    options.identity = name.into();
    let manager = Manager::new("test", place.connection())
        .controller(noting(&Seen::default()))
        .leader_election(options);
    let running = manager.start().await.unwrap();
    running.ready().await;
    running
}

async fn at_most_one_candidate_leads_when_the_server_is_killed(mut place: Place) {
    let one = candidate(&place, "one").await;
    one.leading().await;
    let two = candidate(&place, "two").await;
    eventually(|| async { two.leader().as_deref() == Some("one") }).await;
    let at_most_one = || async { !(one.is_leading() && two.is_leading()) };

    place.kill();
    // Nobody can renew, so after the deadline nobody leads.
    eventually(|| async { !one.is_leading() && !two.is_leading() }).within(Duration::from_secs(20)).await;
    place.come_back();
    eventually(|| async {
        assert!(at_most_one().await);
        one.is_leading() || two.is_leading()
    })
    .within(TIMEOUT)
    .await;
    consistently(at_most_one).throughout(Duration::from_secs(5)).await;

    // Whoever leads goes on if the server is back in time to renew, and nobody else leads in any case.
    let (leader, other) = if one.is_leading() { (&one, &two) } else { (&two, &one) };
    let killed = Instant::now();
    place.kill();
    place.come_back();
    let in_time = killed.elapsed() < Duration::from_secs(6);
    consistently(|| async {
        at_most_one().await && (!in_time || leader.is_leading() && !other.is_leading())
    })
    .throughout(Duration::from_secs(20))
    .await;
    eventually(|| async { one.is_leading() || two.is_leading() }).within(TIMEOUT).await;
    one.stop().await;
    two.stop().await;
}

/// Who has seen a version asks for it after the server has come back; one that the server did not keep would be waited for, and
/// refused as too large.
async fn a_version_that_was_seen_before_a_kill_is_known_after_it(mut place: Place) {
    let maps: Api<ConfigMap> = Api::namespaced(place.client(), "default");
    let newest = Arc::new(AtomicU64::new(0));
    let write = |writer: usize| {
        let (maps, newest) = (maps.clone(), Arc::clone(&newest));
        async move {
            for number in 0.. {
                let map = map(&format!("w{writer}-{number}"), "x");
                let Ok(made) = maps.create(&PostParams::default(), &map).await else { return };
                let version = made.metadata.resource_version.unwrap().parse().unwrap();
                newest.fetch_max(version, Ordering::Relaxed);
            }
        }
    };
    let writers: Vec<_> = (0..8).map(|writer| tokio::spawn(write(writer))).collect();
    let begin = eventually(|| async { Some(newest.load(Ordering::Relaxed)).filter(|seen| *seen > 0) }).await;
    eventually(|| async { newest.load(Ordering::Relaxed) > begin + 100 }).within(TIMEOUT).await;
    place.kill();
    for writer in writers {
        writer.await.unwrap();
    }
    place.come_back();

    let newest = newest.load(Ordering::Relaxed);
    let asked = ListParams::default().at(&newest.to_string()).matching(VersionMatch::NotOlderThan);
    let maps: Api<ConfigMap> = Api::namespaced(place.client(), "default");
    let list = maps.list(&asked).await.unwrap();
    let current: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
    assert!(current >= newest, "{current} < {newest}");
}
