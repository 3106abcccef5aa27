//! Answers that nobody reads, and answers that are large.

use std::time::Duration;

use futures_util::future::join;
use tokio::io::AsyncWriteExt;
use watchkeeper_bench_target::{Ask, Connection, GROUP, Result};

use crate::attack::{Attack, Filled, Scene, Tally, Who};
use crate::site::{NAMESPACE, PLURAL, large};

const WATCHES: usize = 960;
const WRITES: usize = 150;

pub(crate) const ATTACKS: &[Attack] = &[
    Attack {
        time: Duration::from_secs(15),
        filled: Filled::History(700),
        ..Attack::new("960 stalled watches and writes of 100 KB", Who::Editor, |scene| {
            Box::pin(stalled(scene))
        })
    },
    Attack {
        filled: Filled::Objects(2_000, 8_000),
        ..Attack::new("lists of 16 MB by 16 clients", Who::Editor, |scene| Box::pin(lists(scene)))
    },
];

/// Begins watches and never reads an answer, while an object changes.
async fn stalled(scene: Scene) -> Result<Tally> {
    let path = format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{PLURAL}");
    let token = scene.access.authorization.clone().unwrap_or_default();
    let request = format!("GET {path}?watch=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n\r\n");
    let watching = scene.repeat(WATCHES, async |_, tally| {
        let mut stream = scene.access.tls(b"http/1.1").await?;
        stream.write_all(request.as_bytes()).await?;
        tally.count("watches");
        // Held, and not read.
        std::future::pending().await
    });
    let writing = scene.repeat(1, async |_, tally| {
        // The watches first.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let mut connection = Connection::http2(&scene.access).await?;
        let own = format!("{path}/large");
        for number in 0..WRITES {
            let body = large(number);
            let ask = Ask::patch(&own, "application/merge-patch+json", &body);
            tally.count(format!("writes {}", connection.answer(ask).await?.0.as_u16()));
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        std::future::pending().await
    });
    let (watching, writing) = join(watching, writing).await;
    Ok(watching.and(writing))
}

async fn lists(scene: Scene) -> Result<Tally> {
    let path = format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{PLURAL}");
    let tally = scene.repeat(16, async |_, tally| {
        let mut connection = Connection::http2(&scene.access).await?;
        loop {
            let (status, _) = connection.answer(Ask::get(&path)).await?;
            tally.count(status.as_u16());
        }
    });
    Ok(tally.await)
}
