//! Actions: what a reaction does for a change.

mod apply;
mod command;
mod output;
mod post;
mod scratch;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use watchkeeper_client::Client;
use watchkeeper_core::Key;

use crate::change::Change;
use crate::error::Error;
use crate::file::ActionSpec;
use crate::leftovers::Leftovers;
use crate::print::Print;
pub(crate) use apply::{Apply, Stray, group_kind};
pub(crate) use scratch::Scratch;

/// What a reaction does.
pub(crate) enum Action {
    Command(command::Command),
    Post(post::Post),
    Apply(Apply),
}

/// What an action has to know besides its own settings.
pub(crate) struct Run<'a> {
    pub(crate) reaction: &'a str,
    pub(crate) change: &'a Change,
    /// How often it has failed for this object before.
    pub(crate) attempt: u32,
    /// Random, and the same whenever this change is delivered again.
    pub(crate) nonce: u64,
    pub(crate) timeout: Duration,
    /// Becomes true when everything has to end now.
    pub(crate) abort: watch::Receiver<bool>,
}

/// Why an action did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) again: Again,
}

/// Whether it is of any use to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// After the usual time.
    Usual,
    /// After this time.
    After(Duration),
    /// Not before the object has changed.
    Never,
}

impl Failure {
    fn usual(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), again: Again::Usual }
    }

    fn never(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), again: Again::Never }
    }
}

/// What actions are made with.
pub(crate) struct Means {
    pub(crate) reactor: Arc<str>,
    pub(crate) client: Option<Client>,
    pub(crate) scratch: Arc<Scratch>,
    pub(crate) leftovers: Option<Arc<Leftovers>>,
}

impl Action {
    /// `applied` are the kinds of objects that the reaction has applied in earlier runs.
    pub(crate) fn new(
        spec: ActionSpec,
        reaction: &Arc<str>,
        applied: BTreeSet<(String, String)>,
        means: &Means,
    ) -> Result<Self, Error> {
        Ok(match spec {
            ActionSpec::Command(spec) => {
                let scratch = Arc::clone(&means.scratch);
                Self::Command(command::Command::new(spec, scratch, means.leftovers.clone()))
            }
            ActionSpec::Post(spec) => Self::Post(post::Post::new(spec)?),
            ActionSpec::Apply(spec) => {
                let client = means.client.clone();
                let client = client
                    .ok_or_else(|| Error::Input(format!("{reaction}: there is no cluster to apply to")))?;
                Self::Apply(Apply::new(spec, applied, client, [&means.reactor, reaction].map(Arc::clone)))
            }
        })
    }

    /// Does it. However it ends, nothing of it goes on afterwards.
    pub(crate) async fn run(&self, run: &Run<'_>) -> Result<(), Failure> {
        match self {
            Self::Command(command) => command.run(run).await,
            Self::Post(post) => within(run, post.run(run)).await,
            Self::Apply(apply) => within(run, apply.run(run.change)).await,
        }
    }

    /// What it would do.
    pub(crate) fn would(&self, change: &Change) -> Result<String, Failure> {
        match self {
            Self::Command(command) => command.would(change),
            Self::Post(post) => post.would(change),
            Self::Apply(apply) => apply.would(change),
        }
    }

    /// The fingerprint of a state, as far as what is done depends on it: with other templates, there is something to be done although the
    /// object is the same.
    pub(crate) fn print(&self, state: &Value) -> Print {
        let print = Print::of(state);
        match self {
            Self::Apply(apply) => apply.with_templates(print),
            Self::Command(_) | Self::Post(_) => print,
        }
    }

    /// The kinds of objects that may be there, of which those that are gone with their objects have to go.
    pub(crate) fn kinds(&self) -> BTreeSet<(String, String)> {
        match self {
            Self::Apply(apply) => apply.applied(),
            Self::Command(_) | Self::Post(_) => BTreeSet::new(),
        }
    }

    /// The objects for which something is there that would have to go with them.
    pub(crate) async fn origins(&self) -> Result<Vec<Key>, Failure> {
        match self {
            Self::Apply(apply) => apply.origins().await,
            Self::Command(_) | Self::Post(_) => Ok(Vec::new()),
        }
    }
}

/// Resolves when everything has to end now.
async fn aborted(run: &Run<'_>) {
    let mut abort = run.abort.clone();
    if abort.wait_for(|abort| *abort).await.is_err() {
        // Nobody is left who could want it.
        std::future::pending::<()>().await;
    }
}

/// Ends something that takes too long, or that has to end.
async fn within(run: &Run<'_>, action: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::select! {
        done = action => done,
        () = tokio::time::sleep(run.timeout) => Err(Failure::usual(format!("did not end within {:?}", run.timeout))),
        () = aborted(run) => Err(Failure::usual("aborted")),
    }
}
