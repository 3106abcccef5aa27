//! From nothing to the first object, and what that takes.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use http::StatusCode;

use super::Bench;
use crate::Result;
use crate::client::{Ask, refusal};
use crate::sample::{DEFINITIONS, Kind};
use crate::table::{Samples, Unit};
use crate::target::Target;

/// How often the server is started.
pub(crate) const STARTS: usize = 10;
/// How long a server has nothing to do before it is called idle.
const IDLE: Duration = Duration::from_millis(500);

impl Bench {
    pub(super) async fn start(&mut self) -> Result<()> {
        let (mut ready, mut idle) = (Samples::default(), Samples::default());
        for _ in 0..STARTS {
            let target = Target::ours(&self.binary, self.size).await?;
            ready.push(target.ready.as_secs_f64());
            tokio::time::sleep(IDLE).await;
            idle.push(target.memory("VmRSS")?);
        }
        let peer = self.peer.as_ref().map(|peer| peer.ready.as_secs_f64());
        self.add(
            "process started to /readyz served, empty data directory",
            Unit::Seconds,
            Some(0.05),
            ready,
            peer,
        );
        let peer = self.peer.as_ref().map(|peer| peer.memory("VmRSS")).transpose()?;
        self.add("memory (RSS) when idle", Unit::Bytes, Some(25e6), idle, peer);
        let size = [self.stripped()?].into_iter().collect();
        self.add("binary, stripped", Unit::Bytes, Some(40e6), size, None);

        let what = "definition created to first instance created";
        let mut serial = 0;
        self.alternate(what, Unit::Seconds, Some(0.03), async |target| {
            serial += 1;
            let kind = Kind::new(format!("first{serial}"));
            let begin = Instant::now();
            target.connection.call(Ask::post(DEFINITIONS, &kind.definition())).await?;
            target.first(&kind).await?;
            Ok(begin.elapsed().as_secs_f64())
        })
        .await
    }

    fn stripped(&self) -> Result<f64> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("stripped");
        if !Command::new("strip").arg("-o").arg(&file).arg(&self.binary).status()?.success() {
            return Err("strip failed".into());
        }
        Ok(fs::metadata(file)?.len() as f64)
    }
}

impl Target {
    /// Creates the first object of a kind, as soon as the server knows the kind.
    pub(super) async fn first(&mut self, kind: &Kind) -> Result<()> {
        self.used += 1;
        let (path, object) = (kind.collection(), kind.object(self.used, 1, None));
        let ask = Ask::post(&path, &object);
        loop {
            match self.connection.answer(ask).await? {
                (StatusCode::CREATED, _) => return Ok(()),
                (StatusCode::NOT_FOUND, _) => tokio::time::sleep(Duration::from_millis(1)).await,
                (status, pieces) => return Err(refusal(ask, status, &pieces)),
            }
        }
    }
}
