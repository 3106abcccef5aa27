//! Work that several clients share, above all that of filling a server.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use http::StatusCode;

use crate::client::{Ask, Connection, refusal};
use crate::{Access, DEFINITIONS, Kind, Result, Target};

/// Does a piece of work for each of some numbers, with several clients that have a connection each and take the next number
/// when they are done with one. Gives the seconds from the first request to the last answer; connecting does not count.
///
/// # Errors
///
/// The first one of the work, or if a client cannot connect.
pub async fn by_clients(
    access: &Arc<Access>,
    clients: usize,
    numbers: Range<usize>,
    work: impl AsyncFn(&mut Connection, usize) -> Result<()>,
) -> Result<f64> {
    over(&mut connected(access, clients).await?, numbers, work).await
}

/// Connects several clients.
///
/// # Errors
///
/// If one cannot connect.
pub async fn connected(access: &Arc<Access>, clients: usize) -> Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(Connection::http2(access).await?);
    }
    Ok(connections)
}

/// As [`by_clients`], over connections that are there already.
///
/// # Errors
///
/// The first one of the work.
pub async fn over(
    connections: &mut [Connection],
    numbers: Range<usize>,
    work: impl AsyncFn(&mut Connection, usize) -> Result<()>,
) -> Result<f64> {
    let (next, end, work) = (&Cell::new(numbers.start), numbers.end, &work);
    let begin = Instant::now();
    try_join_all(connections.iter_mut().map(async |connection| {
        while next.get() < end {
            work(connection, next.replace(next.get() + 1)).await?;
        }
        Ok::<_, crate::Error>(())
    }))
    .await?;
    Ok(begin.elapsed().as_secs_f64())
}

impl Target {
    /// Creates a definition, and one object of its kind, so that it is there for good.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub async fn define(&mut self, kind: &Kind) -> Result<()> {
        self.renew().await?;
        self.connection.call(Ask::post(DEFINITIONS, &kind.definition())).await?;
        let number = self.take(1).start;
        let (path, object) = (kind.collection(), kind.object(number, 1, None));
        let ask = Ask::post(&path, &object);
        loop {
            match self.connection.answer(ask).await? {
                (StatusCode::CREATED, _) => return Ok(()),
                (StatusCode::NOT_FOUND, _) => tokio::time::sleep(Duration::from_millis(1)).await,
                (status, pieces) => return Err(refusal(ask, status, &pieces)),
            }
        }
    }

    /// Creates so many objects of a kind with several clients, and gives the seconds that it took.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub async fn create(&mut self, kind: &Kind, clients: usize, count: usize) -> Result<f64> {
        self.post(&kind.collection(), clients, count, |number| kind.object(number, 1, None)).await
    }

    /// The same, for any objects at any place.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub async fn post(
        &mut self,
        path: &str,
        clients: usize,
        count: usize,
        object: impl Fn(usize) -> String,
    ) -> Result<f64> {
        let numbers = self.take(count);
        by_clients(&self.access, clients, numbers, async |connection, number| {
            connection.call(Ask::post(path, &object(number))).await.map(drop)
        })
        .await
    }
}
