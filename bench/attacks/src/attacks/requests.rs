//! More requests at once than one client should have.

use std::cell::RefCell;

use futures_util::future::try_join_all;
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
    // Shared by all requests, for they are cut off together when the attack is over.
    let answers = RefCell::new(Tally::default());
    let failures = scene.repeat(16, async |_, _| {
        let connection = Connection::http2(&scene.access).await?;
        let streams = (0..100).map(async |_| {
            let mut connection = connection.share()?;
            loop {
                let (status, _) = connection.answer(Ask::get(&path)).await?;
                answers.borrow_mut().count(status.as_u16());
            }
        });
        try_join_all(streams).await.map(|_: Vec<()>| ())
    });
    let failures = failures.await;
    Ok(answers.into_inner().and(failures))
}
