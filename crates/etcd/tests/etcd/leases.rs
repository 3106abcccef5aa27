//! Leases.

use std::time::Duration;

use watchkeeper_etcd::{Code, Error, Keys, Put, Range};

use crate::server;

#[tokio::test]
async fn keys_go_with_their_lease_and_stay_while_it_is_kept_alive() {
    let server = server!();
    let client = server.builder().build().unwrap();
    let short = client.lease_grant(1).await.unwrap();
    let kept = client.lease_grant(1).await.unwrap();
    let revoked = client.lease_grant(600).await.unwrap();
    assert_eq!(revoked.seconds, 600);
    for (key, lease) in [("short", short), ("kept", kept), ("revoked", revoked)] {
        client.put(&Put::new(key, "x").lease(lease.id)).await.unwrap();
    }
    client.lease_revoke(revoked.id).await.unwrap();
    let mut keep_alive = client.keep_alive().await.unwrap();
    let left = async || -> Vec<String> {
        let found = client.range(&Range::of(Keys::prefix("")).keys_only()).await.unwrap();
        found.kvs.iter().map(|pair| String::from_utf8(pair.key.to_vec()).unwrap()).collect()
    };
    assert_eq!(left().await, ["kept", "short"]);
    while left().await != ["kept"] {
        assert_eq!(keep_alive.renew(kept.id).await.unwrap().id, kept.id);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let gone = keep_alive.renew(short.id).await.unwrap_err();
    assert!(matches!(gone, Error::Refused { code: Code::NOT_FOUND, .. }), "{gone}");
    assert!(keep_alive.renew(kept.id).await.is_ok(), "one lease that is gone does not end the stream");
    let none = client.put(&Put::new("a", "x").lease(77)).await.unwrap_err();
    assert!(matches!(none, Error::Refused { code: Code::NOT_FOUND, .. }), "{none}");
}
