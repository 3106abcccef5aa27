//! The database file of a member is read without it.

use std::time::{Duration, Instant};

use watchkeeper_etcd::testing::Server;
use watchkeeper_etcd::{Delete, Keys, Put, Range, SnapshotFile, SnapshotFileError};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_the_file_of_a_member_is_what_it_serves() {
    let Some(server) = Server::start().await.unwrap() else { return };
    let client = server.builder().build().unwrap();
    for number in 0..2_000 {
        client.put(&Put::new(format!("/k/{number:04}"), "x".repeat(number))).await.unwrap();
    }
    client.put(&Put::new("/k/0001", "changed")).await.unwrap();
    client.put(&Put::new("/large", vec![7; 1 << 20])).await.unwrap();
    let middle = client.delete(&Delete::of(Keys::one("/k/0002"))).await.unwrap().header.revision;
    client.compact(middle, true).await.unwrap();
    client.delete(&Delete::of(Keys::between("/k/0100", "/k/0200"))).await.unwrap();
    let last = client.put(&Put::new("/k/0150", "again")).await.unwrap().header.revision;
    let served = client.range(&Range::of(Keys::prefix(""))).await.unwrap();

    let file = server.data().join("member/snap/db");
    // It is written now and then, and may be read while it is.
    let deadline = Instant::now() + Duration::from_secs(60);
    let read = loop {
        match SnapshotFile::read(&file) {
            Ok(read) if read.revision >= last => break read,
            other => assert!(Instant::now() < deadline, "{:?}", other.map(|read| read.revision)),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(read.revision, last);
    assert_eq!(read.pairs, served.kvs);

    server.kill();
    let good = std::fs::read(&file).unwrap();
    let damaged = file.with_extension("damaged");
    let mut random = fastrand::Rng::with_seed(7);
    // Whatever is wrong with a file, it is read or refused.
    for round in 0..200 {
        let mut bad = good.clone();
        if round % 4 == 0 {
            bad.truncate(random.usize(..good.len()));
        }
        for _ in 0..50 {
            if let Some(byte) = bad.len().checked_sub(1).map(|last| random.usize(..=last)) {
                bad[byte] = random.u8(..);
            }
        }
        // The heads of pages, which everything hangs on.
        for page in 2..6 {
            if let Some(byte) = bad.get_mut(page * 4096 + random.usize(..32)) {
                *byte = random.u8(..);
            }
        }
        std::fs::write(&damaged, &bad).unwrap();
        let _ = SnapshotFile::read(&damaged);
    }
    for (content, complaint) in [(&b""[..], "too short"), (&[0; 100_000], "does not begin as one")] {
        std::fs::write(&damaged, content).unwrap();
        let refused = SnapshotFile::read(&damaged).unwrap_err();
        assert!(matches!(refused, SnapshotFileError::Damaged { .. }));
        assert!(refused.to_string().contains(complaint), "{refused}");
    }
}
