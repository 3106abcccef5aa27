use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_supervision::Supervisor;

use crate::error::{Error, Result};
use crate::leadership::LeadershipWatch;

/// Something of the user's own that a manager runs.
pub(crate) struct Task {
    pub(crate) name: String,
    how: How,
}

enum How {
    Once(Box<dyn FnOnce(Client, CancellationToken) -> BoxFuture<'static, Result<()>> + Send>),
    /// Anew in each term.
    WhileLeading(Box<dyn Fn(Client, CancellationToken) -> BoxFuture<'static, Result<()>> + Send + Sync>),
}

impl Task {
    pub(crate) fn once<F, R>(name: String, task: F) -> Self
    where
        F: FnOnce(Client, CancellationToken) -> R + Send + 'static,
        R: Future<Output = Result<()>> + Send + 'static,
    {
        Self { name, how: How::Once(Box::new(move |client, stop| Box::pin(task(client, stop)))) }
    }

    pub(crate) fn while_leading<F, R>(name: String, task: F) -> Self
    where
        F: Fn(Client, CancellationToken) -> R + Send + Sync + 'static,
        R: Future<Output = Result<()>> + Send + 'static,
    {
        Self { name, how: How::WhileLeading(Box::new(move |client, stop| Box::pin(task(client, stop)))) }
    }

    /// Runs it until it ends or is told to stop; the error says which task failed.
    pub(crate) async fn run(
        self,
        client: Client,
        guarded: Client,
        mut leadership: LeadershipWatch,
        stop: CancellationToken,
        supervisor: Supervisor,
    ) -> Result<()> {
        let name = self.name;
        match self.how {
            How::Once(task) => caught(&supervisor, &name, async { task(client, stop).await }).await,
            How::WhileLeading(task) => loop {
                let won = tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    won = leadership.won() => won,
                };
                let Some(number) = won else { return Ok(()) };
                let term = stop.child_token();
                let running = caught(&supervisor, &name, async { task(guarded.clone(), term.clone()).await });
                tokio::pin!(running);
                let ended = tokio::select! {
                    biased;
                    ended = &mut running => Some(ended),
                    () = leadership.lost(number) => None,
                };
                match ended {
                    // It has done its work, for this term and for later ones.
                    Some(ended) => return ended,
                    None => {
                        term.cancel();
                        running.await?;
                    }
                }
            },
        }
    }
}

async fn caught(supervisor: &Supervisor, name: &str, task: impl Future<Output = Result<()>>) -> Result<()> {
    match supervisor.caught_async("manager-task", &name, task).await {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(Error::message(format!("task {name} failed: {error}"))),
        None => Err(Error::message(format!("task {name} panicked"))),
    }
}
