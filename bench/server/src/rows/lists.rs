//! Lists in all forms.

use watchkeeper_bench_report::Unit;
use watchkeeper_bench_target::{Ask, Kind, Result, SHARDS, after, objects};

use super::{Bench, timed};
use crate::side::Side;
use crate::wanted::Wanted;

/// What kubectl asks for.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// What garbage collectors ask for.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
/// The query of a watch that begins with everything there is.
const STREAMED: &str =
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
/// Objects in a page, as client-go asks for them.
const PAGE: usize = 500;
/// How much faster we aim to be at the plain list.
const TIMES: f64 = 10.0;

/// A way to get all objects of a kind, or some.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum List {
    Plain,
    Table,
    Metadata,
    Selected,
    Paged,
    Streamed,
}

impl List {
    pub(super) const ALL: [Self; 6] =
        [Self::Plain, Self::Table, Self::Metadata, Self::Selected, Self::Paged, Self::Streamed];

    /// What it is called, of so many objects.
    pub(super) fn what(self, count: impl std::fmt::Display) -> String {
        match self {
            Self::Plain => format!("list of {count}"),
            Self::Table => format!("list of {count} as Table"),
            Self::Metadata => format!("list of {count}, metadata only"),
            Self::Selected => format!("list of {count}, 1 in {SHARDS} by label"),
            Self::Paged => format!("list of {count} in pages of {PAGE}"),
            Self::Streamed => format!("initial events of {count} (WatchList)"),
        }
    }

    /// Gets them, and gives the seconds that it took. Whether everything was there is looked at afterwards.
    pub(super) async fn time(self, side: &mut Side, kind: &Kind, count: usize) -> Result<f64> {
        let all = kind.all("");
        match self {
            Self::Plain => read(side, Ask::get(&all), count).await,
            Self::Table => read(side, Ask { accept: TABLE, ..Ask::get(&all) }, count).await,
            Self::Metadata => read(side, Ask { accept: METADATA, ..Ask::get(&all) }, count).await,
            Self::Selected => {
                read(side, Ask::get(&kind.all("labelSelector=shard%3D3")), count / SHARDS).await
            }
            Self::Paged => pages(side, kind, count).await,
            Self::Streamed => {
                timed(async {
                    // The bookmark that ends them is a line too.
                    side.connection.watch(&kind.all(STREAMED)).await?.reach(count + 1).await
                })
                .await
            }
        }
    }
}

impl Bench {
    pub(super) async fn lists(&mut self) -> Result<()> {
        let (kind, count) = (Kind::new("listed"), self.size.objects);
        self.fill(&kind, count).await?;
        self.lists_of(&kind, count).await;
        Ok(())
    }

    /// Measures all forms of a list that has so many objects.
    pub(super) async fn lists_of(&mut self, kind: &Kind, count: usize) {
        for list in List::ALL {
            let row = Wanted::new(Unit::Seconds, list.what(count));
            let row = if list == List::Plain { row.better(TIMES) } else { row };
            self.alternate([row], async |side| Ok([list.time(side, kind, count).await?])).await;
        }
    }
}

/// Gets a list of so many objects, and gives the seconds that it took.
pub(super) async fn read(side: &mut Side, ask: Ask<'_>, count: usize) -> Result<f64> {
    let mut answer = None;
    let time = timed(async {
        answer = Some(side.connection.call(ask).await?);
        Ok(())
    });
    let time = time.await?;
    complete(ask.path, answer.map_or(0, |pieces| objects(&pieces.concat())), count)?;
    Ok(time)
}

async fn pages(side: &mut Side, kind: &Kind, count: usize) -> Result<f64> {
    let mut found = 0;
    let first = kind.all(&format!("limit={PAGE}"));
    let time = timed(async {
        let mut path = first.clone();
        loop {
            let page = side.connection.call(Ask::get(&path)).await?.concat();
            found += objects(&page);
            match after(&page, br#""continue":""#).filter(|token| !token.is_empty()) {
                // Servers make them of what needs no escape in a query.
                Some(token) => path = format!("{first}&continue={token}"),
                None => return Ok(()),
            }
        }
    });
    let time = time.await?;
    complete(&first, found, count)?;
    Ok(time)
}

fn complete(path: &str, found: usize, count: usize) -> Result<()> {
    if found == count { Ok(()) } else { Err(format!("{path}: {found} objects, expected {count}").into()) }
}
