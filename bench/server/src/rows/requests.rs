//! Requests on one object, one after the other.

use http::Method;

use super::{Bench, median};
use crate::side::Side;
use crate::table::Unit;
use watchkeeper_bench_target::Result;
use watchkeeper_bench_target::{Ask, Connection};
use watchkeeper_bench_target::{Kind, version};

impl Bench {
    pub(super) async fn requests(&mut self) -> Result<()> {
        let kind = self.define("requests").await?;
        self.alternate("get, p50", Unit::Seconds, None, async |target| {
            let path = kind.path(target.last());
            let (count, connection) = (target.size.requests, &mut target.connection);
            median(count, async |_| connection.call(Ask::get(&path)).await.map(drop)).await
        })
        .await?;
        self.alternate("replace (PUT), p50", Unit::Seconds, None, async |target| {
            let path = kind.path(target.last());
            let number = target.last();
            let mut last = target.connection.call(Ask::get(&path)).await?;
            median(target.size.requests, async |round| {
                let known = last.concat();
                let body = &kind.object(number, 2 + round, version(&known));
                let put = Ask { method: &Method::PUT, body, ..Ask::get(&path) };
                last = target.connection.call(put).await?;
                Ok(())
            })
            .await
        })
        .await?;
        let merge = "application/merge-patch+json";
        self.alternate("merge patch, p50", Unit::Seconds, None, async |target| {
            let path = kind.path(target.last());
            let (count, connection) = (target.size.requests, &mut target.connection);
            median(count, async |number| {
                let body = format!(r#"{{"spec":{{"size":{}}}}}"#, 2 + number);
                patch(connection, &path, merge, &body).await
            })
            .await
        })
        .await?;
        self.alternate("server-side apply, p50", Unit::Seconds, None, async |target| {
            apply(target, &kind).await
        })
        .await
    }
}

async fn apply(target: &mut Side, kind: &Kind) -> Result<f64> {
    // Forced, for what it applies belongs to whoever replaced and patched it before.
    let path = format!("{}?fieldManager=applier&force=true", kind.path(target.last()));
    let (count, last, connection) = (target.size.requests, target.last(), &mut target.connection);
    median(count, async |number| {
        let object = kind.object(last, 2 + number, None);
        patch(connection, &path, "application/apply-patch+yaml", &object).await
    })
    .await
}

async fn patch(connection: &mut Connection, path: &str, content_type: &str, body: &str) -> Result<()> {
    connection.call(Ask { method: &Method::PATCH, content_type, body, ..Ask::get(path) }).await.map(drop)
}
