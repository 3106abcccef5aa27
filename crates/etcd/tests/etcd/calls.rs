//! Reading, writing, deleting, transactions.

use std::time::Duration;

use watchkeeper_etcd::testing::Proxy;
use watchkeeper_etcd::{
    Client, Code, Compare, Delete, Error, Keys, Notice, Operation, Outcome, Put, Range, Relation, Txn, Watch,
};

use crate::server;

#[tokio::test]
async fn keys_are_written_read_in_pages_and_deleted() {
    let server = server!();
    let client = server.builder().build().unwrap();
    for number in 0..25 {
        client.put(&Put::new(format!("/a/{number:02}"), format!("v{number}"))).await.unwrap();
    }
    client.put(&Put::new("/b", "other")).await.unwrap();

    let all = Keys::prefix("/a/");
    let first = client.range(&Range::of(all.clone()).limit(10)).await.unwrap();
    assert_eq!((first.kvs.len(), first.more, first.count), (10, true, 25));
    let revision = first.header.revision;
    // What is written now is not seen at the revision of the first page.
    client.put(&Put::new("/a/99", "late")).await.unwrap();
    let mut keys: Vec<String> =
        first.kvs.iter().map(|pair| String::from_utf8(pair.key.to_vec()).unwrap()).collect();
    let mut page = first;
    while page.more {
        let rest = all.after(&page.kvs.last().unwrap().key);
        page = client.range(&Range::of(rest).limit(10).at(revision)).await.unwrap();
        keys.extend(page.kvs.iter().map(|pair| String::from_utf8(pair.key.to_vec()).unwrap()));
    }
    assert_eq!(keys, (0..25).map(|number| format!("/a/{number:02}")).collect::<Vec<_>>());

    let only = client.range(&Range::of(Keys::one("/a/07")).keys_only()).await.unwrap();
    assert!(only.kvs[0].value.is_empty() && only.kvs[0].version == 1);
    let count = client.range(&Range::of(all.clone()).count_only()).await.unwrap();
    assert_eq!((count.count, count.kvs.len()), (26, 0));

    let again = client.put(&Put::new("/a/07", "new").previous()).await.unwrap();
    assert_eq!(&*again.previous.unwrap().value, b"v7");
    let found = client.range(&Range::of(Keys::one("/a/07"))).await.unwrap();
    let pair = &found.kvs[0];
    assert_eq!((&*pair.value, pair.version, pair.mod_revision), (&b"new"[..], 2, again.header.revision));
    assert!(pair.create_revision < pair.mod_revision);

    let deleted = client.delete(&Delete::of(all).previous()).await.unwrap();
    assert_eq!((deleted.count, deleted.previous.len()), (26, 26));
    assert_eq!(client.range(&Range::of(Keys::prefix(""))).await.unwrap().count, 1);
}

#[tokio::test]
async fn a_transaction_happens_on_all_its_conditions_or_not_at_all() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let create = Txn::new()
        .when(Compare::absent("a"))
        .then(Put::new("a", "1"))
        .then(Put::new("b", "1"))
        .otherwise(Range::of(Keys::one("a")));
    let done = client.txn(&create).await.unwrap();
    assert!(done.succeeded);
    let revision = done.header.revision;
    let lost = client.txn(&create).await.unwrap();
    assert!(!lost.succeeded && lost.header.revision == revision);
    let Outcome::Range(found) = &lost.outcomes[0] else { panic!("{lost:?}") };
    assert_eq!(found.kvs[0].mod_revision, revision);

    for (condition, holds) in [
        (Compare::mod_revision("a", Relation::Equal, revision), true),
        (Compare::mod_revision("a", Relation::Less, revision), false),
        (Compare::create_revision("a", Relation::Equal, revision), true),
        (Compare::create_revision("none", Relation::Equal, 0), true),
        (Compare::version("a", Relation::Greater, 0), true),
        (Compare::version("a", Relation::NotEqual, 1), false),
        (Compare::value("a", Relation::Equal, "1"), true),
        (Compare::value("a", Relation::NotEqual, "1"), false),
        (Compare::lease("a", Relation::Equal, 0), true),
        (Compare::absent("a"), false),
    ] {
        let txn = Txn::new().when(condition.clone());
        assert_eq!(client.txn(&txn).await.unwrap().succeeded, holds, "{condition:?}");
    }

    // At one revision, both keys.
    let swap = Txn::new()
        .when(Compare::mod_revision("a", Relation::Equal, revision))
        .when(Compare::mod_revision("b", Relation::Equal, revision))
        .then(Operation::Delete(Delete::of(Keys::one("a"))))
        .then(Put::new("b", "2"))
        .then(Range::of(Keys::prefix("")));
    let done = client.txn(&swap).await.unwrap();
    let [Outcome::Delete(deleted), Outcome::Put(put), Outcome::Range(found)] = &*done.outcomes else {
        panic!("{done:?}")
    };
    assert_eq!((deleted.count, found.kvs.len(), found.kvs[0].mod_revision), (1, 1, done.header.revision));
    assert_eq!(put.header.revision, done.header.revision);
}

#[tokio::test]
async fn what_etcd_refuses_is_told_with_its_words() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let error = client.put(&Put::new("", "x")).await.unwrap_err();
    let Error::Refused { code, message } = &error else { panic!("{error:?}") };
    assert_eq!((*code, &**message), (Code::INVALID_ARGUMENT, "etcdserver: key is not provided"));
    let twice = Txn::new().then(Put::new("a", "1")).then(Put::new("a", "2"));
    assert!(matches!(client.txn(&twice).await, Err(Error::Refused { .. })));

    for value in 0..5 {
        client.put(&Put::new("a", value.to_string())).await.unwrap();
    }
    let now = client.range(&Range::of(Keys::one("a"))).await.unwrap().header.revision;
    client.compact(now - 1, true).await.unwrap();
    let old = client.range(&Range::of(Keys::one("a")).at(now - 3)).await.unwrap_err();
    assert!(old.is_compacted() && !old.is_future_revision(), "{old}");
    let new = client.range(&Range::of(Keys::one("a")).at(now + 3)).await.unwrap_err();
    assert!(new.is_future_revision(), "{new}");
    assert_eq!(client.range(&Range::of(Keys::one("a")).at(now - 1)).await.unwrap().kvs.len(), 1);
}

#[tokio::test]
async fn a_member_tells_how_it_is_and_who_is_with_it() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let status = client.status().await.unwrap();
    assert!(status.version.starts_with("3."), "{status:?}");
    assert!(status.leader != 0 && status.db_bytes > 0 && status.errors.is_empty());
    let members = client.members().await.unwrap();
    assert_eq!((members.len(), members[0].id), (1, status.header.member));
    assert_eq!(members[0].client_urls, [server.endpoint()]);
}

#[tokio::test]
async fn many_calls_share_one_connection_which_goes_with_the_last_handle() {
    let server = server!();
    let proxy = Proxy::to(server.port()).await.unwrap();
    let client = Client::builder([proxy.endpoint()]).build().unwrap();
    let puts = (0..200).map(|number| {
        let client = client.clone();
        tokio::spawn(async move { client.put(&Put::new(format!("k{number}"), "v")).await.map(drop) })
    });
    for put in puts.collect::<Vec<_>>() {
        put.await.unwrap().unwrap();
    }
    assert_eq!(client.range(&Range::of(Keys::prefix("k")).count_only()).await.unwrap().count, 200);
    assert_eq!(proxy.connections(), 1);
    let mut watcher = client.watcher().await.unwrap();
    drop(client);
    watcher.watch(&Watch::of(Keys::prefix("k"))).await.unwrap();
    assert!(matches!(watcher.next().await.unwrap(), Notice::Created { .. }));
    assert_eq!(proxy.connections(), 1);
    drop(watcher);
    tokio::time::timeout(Duration::from_secs(10), async {
        while proxy.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .expect("nobody holds it any more");
}
