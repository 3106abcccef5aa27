//! The feed of a union: a snapshot of one member after the other, then the changes of all.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use futures_util::stream::{self, StreamExt as _};
use watchkeeper_core::{Error, Event, Feed, Freshness, Start, Version};

use super::members::{Item, Member};
use super::merge::Merge;
use super::{MemberStatus, Shared, versions};

/// Everything a feed does happens while it is polled; dropping it drops the feeds of all members.
pub(super) fn open(shared: Arc<Shared>, start: Start) -> Feed {
    let events = stream::once(async move { begin(shared, start) }).flat_map(|begun| match begun {
        Err(error) => stream::once(async { Err(error) }).left_stream(),
        Ok(feeding) => stream::unfold(Some(Box::new(feeding)), |feeding| async move {
            let mut feeding = feeding?;
            match feeding.next().await {
                Ok(event) => Some((Ok(event), Some(feeding))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .right_stream(),
    });
    Box::pin(events.fuse())
}

struct Feeding {
    shared: Arc<Shared>,
    /// Away when it is given back.
    merge: Option<Merge>,
    members: Vec<Member>,
    stage: Stage,
    queue: VecDeque<Event>,
    /// Whose turn it is.
    turn: usize,
}

enum Stage {
    /// Reads the snapshot of this member.
    Snapshot(usize, Vec<Freshness>),
    Follow {
        /// Whether the reader asked to resume: a member that cannot says so in its first word.
        resumed: bool,
    },
}

fn begin(shared: Arc<Shared>, start: Start) -> Result<Feeding, Error> {
    let count = shared.members.len();
    if count == 0 {
        return Err(Error::Fatal(format!("{}: a union without members", shared.name)));
    }
    let expired = |version: &Version| Error::Expired(format!("{}: {version} is not available", shared.name));
    let positions = |version: &Version| versions::split(version, count).ok_or_else(|| expired(version));
    let mut members: Vec<Member> = shared
        .members
        .iter()
        .map(|member| Member::new(Arc::clone(&member.name), Arc::clone(&member.source)))
        .collect();
    let status = |name: &Arc<str>, synced| MemberStatus { name: Arc::clone(name), synced, error: None };
    let resumed = matches!(start, Start::Resume(_));
    let (merge, stage) = match start {
        Start::Resume(version) => {
            let at = positions(&version)?;
            let known = shared.memory().take_if(|merge| merge.position().as_ref() == Some(&version));
            let merge = known.ok_or_else(|| expired(&version))?;
            for (member, position) in members.iter_mut().zip(at) {
                member.open(Start::Resume(position));
            }
            (merge, Stage::Follow { resumed: true })
        }
        Start::Snapshot(freshness) => {
            let each = match freshness {
                Freshness::NotOlderThan(version) => {
                    positions(&version)?.into_iter().map(Freshness::NotOlderThan).collect()
                }
                same => vec![same; count],
            };
            let new = || {
                let member = |member: &super::Named| {
                    (Arc::clone(&member.name), member.source.capabilities().confirm_shrink)
                };
                Merge::new(shared.members.iter().map(member), shared.overriding, shared.has_log())
            };
            let known = shared.memory().take();
            (known.map_or_else(new, Merge::anew), Stage::Snapshot(0, each))
        }
    };
    *shared.status() = members.iter().map(|member| status(&member.name, resumed)).collect();
    let queue = if resumed { VecDeque::new() } else { VecDeque::from([Event::Begin]) };
    if let Stage::Snapshot(_, each) = &stage {
        members[0].open(Start::Snapshot(each[0].clone()));
    }
    Ok(Feeding { shared, merge: Some(merge), members, stage, queue, turn: 0 })
}

impl Feeding {
    async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            match self.stage {
                Stage::Snapshot(at, _) => {
                    let item = poll_fn(|context| self.members[at].poll(context)).await;
                    self.list(at, item)?;
                }
                Stage::Follow { resumed } => {
                    let (at, item) = self.heard().await;
                    self.follow(at, item, resumed)?;
                }
            }
        }
    }

    /// What any member says next; they take turns.
    async fn heard(&mut self) -> (usize, Item) {
        let count = self.members.len();
        self.turn = (self.turn + 1) % count;
        poll_fn(|context| {
            for at in (0..count).map(|step| (self.turn + step) % count) {
                if let Poll::Ready(item) = self.members[at].poll(context) {
                    return Poll::Ready((at, item));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Takes over what a member says in its first snapshot.
    fn list(&mut self, at: usize, item: Item) -> Result<(), Error> {
        let Some(merge) = &mut self.merge else { return Ok(()) };
        let event = match item {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Err(self.failed(at, error)),
            None => {
                let reason = "the feed ended before its snapshot did".into();
                return Err(self.failed(at, Error::Unavailable { answered: true, reason }));
            }
        };
        let is_last = matches!(event, Event::Complete(_));
        self.queue.extend(merge.take(at, event));
        if !is_last {
            return Ok(());
        }
        self.shared.status()[at].synced = true;
        if merge.doubts(at) {
            self.members[at].confirm(merge.position_of(at));
        }
        match &self.stage {
            Stage::Snapshot(_, each) if at + 1 < each.len() => {
                self.members[at + 1].open(Start::Snapshot(each[at + 1].clone()));
                self.stage = Stage::Snapshot(at + 1, each.clone());
            }
            _ => {
                self.queue.push_back(merge.begun());
                self.stage = Stage::Follow { resumed: false };
            }
        }
        Ok(())
    }

    /// Takes over what a member says after that.
    fn follow(&mut self, at: usize, item: Item, resumed: bool) -> Result<(), Error> {
        let Some(merge) = &mut self.merge else { return Ok(()) };
        match item {
            Some(Ok(event)) => {
                let is_complete = matches!(event, Event::Complete(_));
                // A member that cannot resume says so before anything is said for all.
                let is_early = resumed && !self.members.iter().all(|member| member.heard);
                let mut told = merge.take(at, event);
                told.retain(|event| !is_early || !matches!(event, Event::Position(_)));
                self.queue.extend(told);
                self.shared.status()[at].error = None;
                if is_complete && merge.doubts(at) {
                    self.members[at].confirm(merge.position_of(at));
                }
                for (heir, member) in self.members.iter_mut().enumerate() {
                    if merge.wants(heir) && !member.is_reading() {
                        member.read_again(merge.position_of(heir));
                    }
                }
            }
            Some(Err(error @ Error::Expired(_))) if resumed && !self.members[at].heard => {
                return Err(self.failed(at, error));
            }
            ended => {
                let error = ended.and_then(Result::err);
                merge.interrupted(at);
                self.members[at].ended(error.as_ref(), merge.position_of(at), merge.wants(at));
                if let Some(error) = error {
                    let (union, member) = (&self.shared.name, &self.members[at].name);
                    tracing::warn!(%union, %member, %error, "a member of a union failed; its objects stay");
                    self.shared.status()[at].error = Some(error);
                }
            }
        }
        Ok(())
    }

    /// The error of a member as that of the union.
    fn failed(&self, at: usize, error: Error) -> Error {
        self.shared.status()[at].error = Some(error.clone());
        let name = &self.members[at].name;
        let named = |text: String| format!("{name}: {text}");
        match error {
            Error::Expired(text) => Error::Expired(named(text)),
            Error::Throttled { after, reason } => Error::Throttled { after, reason: named(reason) },
            Error::Unavailable { answered, reason } => Error::Unavailable { answered, reason: named(reason) },
            Error::Denied(text) => Error::Denied(named(text)),
            Error::Missing(text) => Error::Missing(named(text)),
            Error::Fatal(text) => Error::Fatal(named(text)),
            other => other,
        }
    }
}

impl Drop for Feeding {
    /// What the reader was told is remembered, if it was told all of it.
    fn drop(&mut self) {
        *self.shared.memory() = self.merge.take();
    }
}
