//! Documents that are large, and the same for everybody.

use watchkeeper_bench_target::{Ask, Connection, GROUP, Result};

use crate::attack::{Attack, Filled, Scene, Tally, Who};

const CLIENTS: usize = 8;

const fn attack(name: &'static str, definitions: usize, attack: Attack) -> Attack {
    Attack { name, filled: Filled::Definitions(definitions), ..attack }
}

const V2: Attack = Attack::new("", Who::Authenticated, |scene| Box::pin(read(scene, "/openapi/v2".into())));
const V3: Attack = Attack::new("", Who::Authenticated, |scene| {
    Box::pin(read(scene, format!("/openapi/v3/apis/{GROUP}/v1")))
});
const DISCOVERY: Attack = Attack::new("", Who::Authenticated, |scene| Box::pin(read(scene, "/apis".into())));

pub(crate) const ATTACKS: &[Attack] = &[
    attack("/openapi/v2 by 8 clients, 5 CRDs", 5, V2),
    attack("/openapi/v2 by 8 clients, 300 CRDs", 300, V2),
    attack("/openapi/v3 of a group by 8 clients, 300 CRDs", 300, V3),
    attack("aggregated discovery by 8 clients, 300 CRDs", 300, DISCOVERY),
];

async fn read(scene: Scene, path: String) -> Result<Tally> {
    let accept = match path.as_str() {
        "/apis" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json",
    };
    let tally = scene.repeat(CLIENTS, async |_, tally| {
        let mut connection = Connection::http2(&scene.access).await?;
        loop {
            let (status, _) = connection.answer(Ask { accept, ..Ask::get(&path) }).await?;
            tally.count(status.as_u16());
        }
    });
    Ok(tally.await)
}
