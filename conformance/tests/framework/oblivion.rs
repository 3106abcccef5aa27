//! A history that is gone: the informer is told so by a 410 and lists anew.

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc;
use watchkeeper::client::Client;
use watchkeeper::informer::{Entry, Informer};
use watchkeeper::source::{ChangeKind, Error};
use watchkeeper::sources::kubernetes::Kubernetes;
use watchkeeper_testkit::eventually;
use watchkeeper_testkit::fixtures::key;

use crate::kinds::{in_the_store, map, on_the_server};
use crate::on_both_servers;
use crate::place::Place;
use crate::road::Road;

on_both_servers!(what_happened_in_a_history_that_was_compacted_is_found_by_a_new_list);

async fn what_happened_in_a_history_that_was_compacted_is_found_by_a_new_list(mut place: Place) {
    let config = place.config();
    let road = Road::to(&config).await;
    let person = Client::new(place.connection());
    for name in ["stays", "changes", "goes", "is-replaced"] {
        person.create(&map(name, "before")).await.unwrap();
    }
    let (journal, mut entries) = mpsc::channel(1000);
    let source = Kubernetes::of::<ConfigMap>(road.connection(config)).namespace("default");
    let informer = Informer::<ConfigMap>::builder().journal(journal).start(source);
    let store = informer.store();
    eventually(|| async { store.contains(&key("is-replaced")) }).await;
    let read = store.positions()[0].clone().unwrap().to_string();

    road.close();
    person.modify::<ConfigMap>(&key("changes"), |map| *map = with(map, "after")).await.unwrap();
    person.delete_key::<ConfigMap>(&key("goes")).await.unwrap();
    person.delete_key::<ConfigMap>(&key("is-replaced")).await.unwrap();
    person.create(&map("is-replaced", "after")).await.unwrap();
    person.create(&map("is-new", "after")).await.unwrap();
    place.forget(&read).await;
    let client = place.client();
    while entries.try_recv().is_ok() {}
    road.open();

    eventually(|| async {
        let (server, ours) =
            (on_the_server(&client).await.map_err(|error| error.to_string())?, in_the_store(&store));
        if server == ours { Ok(()) } else { Err(format!("{server:?} {ours:?}")) }
    })
    .within(std::time::Duration::from_secs(60))
    .await;
    let mut seen = Vec::new();
    let mut expired = 0;
    while let Ok(entry) = entries.try_recv() {
        match entry {
            Entry::Changed(change) if change.key.name() != "clock" => {
                seen.push(format!("{:?} {}", change.kind(), change.key.name()));
            }
            Entry::Interrupted { error: Some(Error::Expired(_)), .. } => expired += 1,
            _ => {}
        }
    }
    seen.retain(|line| !line.ends_with("kube-root-ca.crt"));
    seen.sort();
    let expected = [
        (ChangeKind::Added, "is-new"),
        (ChangeKind::Added, "is-replaced"),
        (ChangeKind::Deleted, "goes"),
        (ChangeKind::Deleted, "is-replaced"),
        (ChangeKind::Modified, "changes"),
    ];
    assert_eq!(seen, expected.map(|(kind, name)| format!("{kind:?} {name}")));
    assert_eq!(expired, 1);
    informer.stop().await;
}

fn with(map: &ConfigMap, says: &str) -> ConfigMap {
    let mut changed = map.clone();
    changed.data = crate::kinds::map("", says).data;
    changed
}
