//! Sending all cases.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube_client::Client;

use super::answer::{Asker, Outcome};
use super::case::Case;

/// How many requests are under way at a time.
const WORKERS: usize = 16;

/// How many watches, each of which takes a second.
const WATCHERS: usize = 128;

/// Sends every case, several at a time.
pub async fn ask(client: &Client, cases: &Arc<[Case]>) -> Result<Vec<Outcome>, String> {
    let (watches, others): (Vec<usize>, Vec<usize>) =
        (0..cases.len()).partition(|index| cases[*index].is_watch());
    let mut all: Vec<Option<Outcome>> = vec![None; cases.len()];
    for (indexes, workers) in [(others, WORKERS), (watches, WATCHERS)] {
        let (indexes, next) = (Arc::new(indexes), Arc::new(AtomicUsize::new(0)));
        let mut tasks = Vec::new();
        for _ in 0..workers {
            let (asker, cases) = (Asker::new(client.clone()), Arc::clone(cases));
            let (indexes, next) = (Arc::clone(&indexes), Arc::clone(&next));
            tasks.push(tokio::spawn(async move {
                let mut outcomes = Vec::new();
                while let Some(index) = indexes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    outcomes.push((*index, asker.ask(&cases[*index]).await?));
                }
                Ok::<_, String>(outcomes)
            }));
        }
        for task in tasks {
            for (index, outcome) in task.await.map_err(|error| error.to_string())?? {
                all[index] = Some(outcome);
            }
        }
    }
    all.into_iter().map(|outcome| outcome.ok_or_else(|| "a case was left out".to_owned())).collect()
}
