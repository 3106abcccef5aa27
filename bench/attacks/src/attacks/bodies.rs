//! Bodies that are small on the wire and large once they are parsed.

use futures_util::future::LocalBoxFuture;
use watchkeeper_bench_target::{Ask, Connection, GROUP, Result};

use crate::attack::{Attack, Scene, Tally, Who};
use crate::site::{NAMESPACE, PLURAL};

const MEGABYTE: usize = 1_000_000;
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// Bodies that each attacker sends at the most, so that what is stored is bounded.
const MOST: usize = 12;

const fn editor(name: &'static str, act: fn(Scene) -> LocalBoxFuture<'static, Result<Tally>>) -> Attack {
    // Each is deleted or emptied again; what stays is the history of that.
    Attack { stored: MEGABYTE as f64, ..Attack::new(name, Who::Editor, act) }
}

pub(crate) const ATTACKS: &[Attack] = &[
    Attack::new("16 reviews of 3 MB of `{\"\":0}`", Who::Authenticated, |scene| {
        Box::pin(reviews(scene, 3 * MEGABYTE - 1000))
    }),
    // Just below what ours refuses.
    Attack::new("16 reviews of 600 KB of the same", Who::Authenticated, |scene| {
        Box::pin(reviews(scene, 600_000))
    }),
    editor("8 creates of 1 MB of `{\"\":0}` in a custom resource", |scene| {
        Box::pin(creates(scene, "application/json"))
    }),
    editor("the same in YAML", |scene| Box::pin(creates(scene, "application/yaml"))),
    editor("the same as merge patches", |scene| Box::pin(patches(scene, "application/merge-patch+json"))),
    editor("the same as JSON patches", |scene| Box::pin(patches(scene, "application/json-patch+json"))),
    editor("the same as server-side applies", |scene| {
        Box::pin(patches(scene, "application/apply-patch+yaml"))
    }),
];

/// A list of small objects, each of which takes far more memory than the eight bytes that it is here.
fn bulk(bytes: usize) -> String {
    let mut text = r#"{"":0},"#.repeat(bytes / 7);
    text.pop();
    format!("[{text}]")
}

async fn reviews(scene: Scene, bytes: usize) -> Result<Tally> {
    let body = format!(
        r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{{"nonResourceAttributes":{{"path":"/","verb":"get"}}}},"x":{}}}"#,
        bulk(bytes)
    );
    let tally = scene.repeat(16, async |_, tally| {
        let mut connection = Connection::http2(&scene.access).await?;
        loop {
            let (status, _) = connection.answer(Ask::post(REVIEWS, &body)).await?;
            tally.count(status.as_u16());
        }
    });
    Ok(tally.await)
}

fn collection() -> String {
    format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/{PLURAL}")
}

fn object(name: &str, bulk: &str) -> String {
    format!(
        r#"{{"apiVersion":"{GROUP}/v1","kind":"{PLURAL}","metadata":{{"name":"{name}"}},"spec":{{"bulk":{bulk}}}}}"#
    )
}

async fn creates(scene: Scene, content_type: &str) -> Result<Tally> {
    let (path, bulk) = (collection(), bulk(MEGABYTE));
    let tally = scene.repeat(8, async |attacker, tally| {
        let mut connection = Connection::http2(&scene.access).await?;
        for number in 0..MOST {
            let name = format!("bulk-{attacker}-{number}");
            let body = object(&name, &bulk);
            let (status, _) = connection.answer(Ask { content_type, ..Ask::post(&path, &body) }).await?;
            tally.count(status.as_u16());
            let own = format!("{path}/{name}");
            connection.answer(Ask::delete(&own)).await?;
        }
        std::future::pending().await
    });
    Ok(tally.await)
}

async fn patches(scene: Scene, content_type: &str) -> Result<Tally> {
    let (path, bulk) = (collection(), bulk(MEGABYTE));
    let tally = scene.repeat(8, async |attacker, tally| {
        let mut connection = Connection::http2(&scene.access).await?;
        let name = format!("bulk-{attacker}");
        let own = format!("{path}/{name}");
        let applied = format!("{own}?fieldManager=attacker&force=true");
        let patched = if content_type.contains("apply") { &applied } else { &own };
        connection.answer(Ask::post(&path, &object(&name, "[]"))).await?;
        let body = match content_type {
            "application/json-patch+json" => {
                format!(r#"[{{"op":"add","path":"/spec/bulk","value":{bulk}}}]"#)
            }
            "application/merge-patch+json" => format!(r#"{{"spec":{{"bulk":{bulk}}}}}"#),
            _ => object(&name, &bulk),
        };
        for _ in 0..MOST {
            let (status, _) = connection.answer(Ask::patch(patched, content_type, &body)).await?;
            tally.count(status.as_u16());
            let empty = r#"{"spec":{"bulk":[]}}"#;
            connection.answer(Ask::patch(&own, "application/merge-patch+json", empty)).await?;
        }
        std::future::pending().await
    });
    Ok(tally.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bulk_is_json_of_the_size_that_was_asked_for() {
        let text = bulk(1000);
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(parsed.as_array().map(Vec::len), Some(142));
        assert!((990..=1001).contains(&text.len()));
    }
}
