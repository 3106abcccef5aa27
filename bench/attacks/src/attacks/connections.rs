//! Connections that say nothing, or say it slowly.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use watchkeeper_bench_target::{OpenFiles, Result};

use crate::attack::{Attack, Scene, Tally, Who};

/// More than a server with a limit of 256 files can hold.
const MANY: usize = 300;
/// How often those who are slow send something.
const PACE: Duration = Duration::from_millis(500);
const TIME: Duration = Duration::from_secs(12);

const fn attack(name: &'static str, files: OpenFiles, attack: Attack) -> Attack {
    Attack { name, files, fresh: true, time: TIME, ..attack }
}

const IDLE: Attack = Attack::new("", Who::Stranger, |scene| Box::pin(idle(scene)));
const SILENT: Attack = Attack::new("", Who::Stranger, |scene| Box::pin(silent(scene)));

pub(crate) const ATTACKS: &[Attack] = &[
    attack("300 idle TLS connections, soft limit of 256 files", OpenFiles::Soft(256), IDLE),
    attack("300 silent TCP connections, soft limit of 256 files", OpenFiles::Soft(256), SILENT),
    attack("300 idle TLS connections, hard limit of 256 files", OpenFiles::Hard(256), IDLE),
    attack(
        "200 requests with slow headers, hard limit of 256 files",
        OpenFiles::Hard(256),
        Attack::new("", Who::Stranger, |scene| Box::pin(slow_headers(scene))),
    ),
    attack(
        "200 requests with slow bodies",
        OpenFiles::AsHere,
        Attack::new("", Who::Authenticated, |scene| Box::pin(slow_bodies(scene))),
    ),
];

/// Shakes hands and says no more. Who is thrown out comes back.
async fn idle(scene: Scene) -> Result<Tally> {
    let tally = scene.repeat(MANY, async |_, tally| {
        let mut stream = scene.access.tls(b"h2").await?;
        tally.count("opened");
        until_closed(&mut stream, tally).await;
        Ok(())
    });
    Ok(tally.await)
}

/// Connects and says nothing.
async fn silent(scene: Scene) -> Result<Tally> {
    let tally = scene.repeat(MANY, async |_, tally| {
        let mut stream = scene.access.tcp().await?;
        tally.count("opened");
        until_closed(&mut stream, tally).await;
        Ok(())
    });
    Ok(tally.await)
}

/// Begins a request and never ends its headers.
async fn slow_headers(scene: Scene) -> Result<Tally> {
    let tally = scene.repeat(200, async |_, tally| {
        let mut stream = scene.access.tls(b"http/1.1").await?;
        tally.count("opened");
        stream.write_all(b"GET /version HTTP/1.1\r\nHost: localhost\r\n").await?;
        for number in 0.. {
            tokio::time::sleep(PACE).await;
            if stream.write_all(format!("x-{number}: 1\r\n").as_bytes()).await.is_err() {
                tally.count("closed by the server");
                break;
            }
        }
        Ok(())
    });
    Ok(tally.await)
}

/// Announces a body of a megabyte and sends it a few bytes at a time.
async fn slow_bodies(scene: Scene) -> Result<Tally> {
    let token = scene.access.authorization.clone().unwrap_or_default();
    let head = format!(
        "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: localhost\r\n\
         Authorization: {token}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{{"
    );
    let tally = scene.repeat(200, async |_, tally| {
        let mut stream = scene.access.tls(b"http/1.1").await?;
        tally.count("opened");
        stream.write_all(head.as_bytes()).await?;
        while stream.write_all(&[b' '; 100]).await.is_ok() {
            tokio::time::sleep(PACE).await;
        }
        tally.count("closed by the server");
        Ok(())
    });
    Ok(tally.await)
}

async fn until_closed(stream: &mut (impl AsyncReadExt + Unpin), tally: &mut Tally) {
    let mut buffer = [0; 1024];
    while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {}
    tally.count("closed by the server");
}
