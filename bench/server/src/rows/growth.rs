//! How costs grow with the number of objects, or of watchers.

use watchkeeper_bench_report::{Curve, Point, Row, Samples, Unit};
use watchkeeper_bench_target::{End, Kind, Memory, Peer, Result};

use super::collecting::{namespace, owner};
use super::fan_out::reached;
use super::lists::List;
use super::restart::restarted;
use super::{Bench, round};
use crate::side::Side;

/// Three of each are enough for an exponent.
const ROUNDS: usize = 3;
/// Changes that are made while so many objects are there, or so many watch.
const CHANGES: usize = 200;
/// Clients that make them.
const WRITERS: usize = 16;
/// For one watcher there are so many objects in the other curves.
const OBJECTS_PER_WATCHER: usize = 100;

/// What grows.
#[derive(Clone, Copy, PartialEq)]
enum Cost {
    List(List),
    Memory,
    Creates,
    Restart,
    Watchers,
    /// Beside kube-apiserver, it is another process that does these.
    Owner,
    Namespace,
}

impl Cost {
    const ALL: [Self; 11] = [
        Self::Memory,
        Self::List(List::Plain),
        Self::List(List::Selected),
        Self::List(List::Paged),
        Self::List(List::Streamed),
        Self::List(List::Table),
        Self::Creates,
        Self::Watchers,
        Self::Restart,
        Self::Owner,
        Self::Namespace,
    ];

    fn what(self) -> String {
        match self {
            Self::List(list) => list.what("N"),
            Self::Memory => "memory (RSS) of N objects".into(),
            Self::Creates => format!("CPU time of {CHANGES} creates beside N objects"),
            Self::Restart => "started again with N objects to the first of them served".into(),
            Self::Watchers => format!("{CHANGES} creates to the last of N watchers told"),
            Self::Owner => "owner of N deleted to the last of them gone".into(),
            Self::Namespace => "namespace with N deleted to gone".into(),
        }
    }

    fn curve(self) -> Curve {
        let unit = if self == Self::Memory { Unit::Bytes } else { Unit::Seconds };
        let alone = matches!(self, Self::Owner | Self::Namespace);
        let peer_name = (!alone).then(|| Peer::NAME.into());
        Curve { group: "growth".into(), what: self.what(), unit, peer_name, points: Vec::new() }
    }

    /// How many there are, if so many objects are there.
    fn count(self, objects: usize) -> usize {
        if self == Self::Watchers { objects.div_ceil(OBJECTS_PER_WATCHER) } else { objects }
    }

    async fn measure(self, side: &mut Side, at: &At) -> Result<f64> {
        match self {
            Self::List(list) => list.time(side, &at.listed, at.objects).await,
            Self::Memory => side.memory(Memory::Now),
            Self::Creates => {
                let before = side.cpu()?;
                side.create(&at.others, WRITERS, CHANGES).await?;
                Ok(side.cpu()? - before)
            }
            Self::Restart => restarted(side, &at.listed, End::Asked).await,
            Self::Watchers => reached(side, &at.watched, self.count(at.objects), CHANGES).await,
            Self::Owner => Ok(owner(side, &at.owned, &at.others, at.objects).await?.0),
            Self::Namespace => Ok(namespace(side, &at.owned, &at.others, at.objects).await?.0),
        }
    }
}

/// Where measurements are made.
struct At {
    objects: usize,
    listed: Kind,
    watched: Kind,
    owned: Kind,
    others: Kind,
}

impl Bench {
    pub(super) async fn growth(&mut self) -> Result<()> {
        let mut curves = Cost::ALL.map(Cost::curve);
        let mut failures = Cost::ALL.map(|_| None);
        for (step, objects) in self.size.steps.into_iter().enumerate() {
            if step > 0 {
                self.anew().await?;
            }
            let [listed, watched, owned, others] = ["listed", "watched", "owned", "others"].map(Kind::new);
            for kind in [&watched, &owned, &others] {
                self.define(kind).await?;
            }
            let mut empty = Vec::new();
            for side in self.sides() {
                empty.push(side.memory(Memory::Now)?);
            }
            self.fill(&listed, objects).await?;
            let at = At { objects, listed, watched, owned, others };
            for ((cost, curve), failure) in Cost::ALL.into_iter().zip(&mut curves).zip(&mut failures) {
                eprintln!("measuring: {} with N = {}", curve.what, cost.count(objects));
                let alone = curve.peer_name.is_none();
                let mut point = Point {
                    count: cost.count(objects) as f64,
                    ours: Samples::default(),
                    peer: Samples::default(),
                };
                'rounds: for _ in 0..self.size.rounds.min(ROUNDS) {
                    for (number, side) in self.sides().enumerate().take(if alone { 1 } else { 2 }) {
                        match round(side, &mut async |side| cost.measure(side, &at).await).await {
                            Ok(value) => {
                                // What a server without objects holds does not grow.
                                let value = if cost == Cost::Memory { value - empty[number] } else { value };
                                if number == 0 { point.ours.push(value) } else { point.peer.push(value) }
                            }
                            Err(error) => {
                                *failure = Some(format!("with {objects} objects: {error}"));
                                break 'rounds;
                            }
                        }
                        side.crowd = None;
                    }
                }
                curve.points.push(point);
            }
        }
        for (curve, failure) in curves.into_iter().zip(failures) {
            if let Some(why) = failure {
                self.report.rows.push(Row::failed(self.group, curve.what.clone(), why));
            }
            self.report.curves.push(curve);
        }
        Ok(())
    }
}
