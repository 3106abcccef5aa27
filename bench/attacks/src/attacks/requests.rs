//! More requests at once than one client should have.

use std::time::Duration;

use futures_util::future::join_all;
use watchkeeper_bench_target::{Ask, Connection, GROUP, Result};

use crate::attack::{Attack, Filled, Scene, Tally, Who};
use crate::site::{NAMESPACE, PLURAL};

pub(crate) const ATTACKS: &[Attack] = &[Attack {
    filled: Filled::Objects(50, 600),
    ..Attack::new("1,600 lists at once by one identity", Who::Editor, |scene| Box::pin(flood(scene)))
}];

/// Sixteen connections with a hundred requests each; the next follows when one is answered, whatever the answer.
async fn flood(scene: Scene) -> Result<Tally> {
    let path = format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{PLURAL}");
    let tally = scene.repeat(16, async |_, tally| {
        let connection = Connection::http2(&scene.access).await?;
        let streams = (0..100).map(async |_| {
            let (mut tally, mut connection) = (Tally::default(), connection.share()?);
            while scene.goes_on() {
                match scene.within(connection.answer(Ask::get(&path))).await {
                    Some(Ok((status, _))) => tally.count(status.as_u16()),
                    Some(Err(_)) => {
                        tally.count("failed");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        if connection.is_closed() {
                            break;
                        }
                    }
                    None => {}
                }
            }
            Ok::<_, watchkeeper_bench_target::Error>(tally)
        });
        // Not cut off at the end of the attack by `repeat`: each of the streams ends by itself.
        for stream in join_all(streams).await {
            *tally = std::mem::take(tally).and(stream?);
        }
        Ok(())
    });
    Ok(tally.await)
}
