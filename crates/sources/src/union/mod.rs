//! Several sources of one kind of object as one source.

mod feed;
mod members;
mod merge;
mod versions;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::ready;
use watchkeeper_core::{
    Capabilities, Error, Feed, Follow, ObjectStatus, Order, Source, SourceGauge, Start, StatusWritten,
    Version,
};

use merge::Merge;

/// Several sources as one: a directory, a table and a kind of a cluster that all hold routes.
///
/// ```
/// use watchkeeper_core::Source;
/// use watchkeeper_sources::union::Union;
///
/// fn routes(local: impl Source, table: impl Source) -> Union {
///     // What the directory says counts more than what the table says.
///     Union::of("routes").member(local).member(table)
/// }
/// ```
///
/// # Who wins a key
///
/// The member that was added first. An object of the same key in a later member is [rejected](watchkeeper_core::Reason::Conflict) with the
/// names of both, or, with [`overriding`](Self::overriding), passed over in silence. When the winner lets go of the key, the object of the next
/// member takes its place, as a change: the key is never gone in between.
///
/// # What a member that fails means
///
/// Nothing for the others, and nothing for its own objects: they stay until it says that they are gone. The union opens it again, with a
/// back-off, resumes where it can, and tells what is different. [`status`](Self::status) says how each member is doing. Only the *first*
/// snapshot needs all members: without one of them it would not be complete, and the feed fails with that member's error.
///
/// If a member [has to confirm](Capabilities::confirm_shrink) that most of its objects are gone, the union asks it again before it believes
/// that. It is judged by its own objects, however many others there are.
///
/// # What it promises beyond [`Source`]
///
/// - A position has the positions of all members. If all of them have a log, so has the union, and a feed can be resumed where the last one
///   stopped, as long as the union lives. Any other position is [`Expired`](Error::Expired).
/// - [`Source::origin`] names the member that an object came from, and a status is written back to that member.
/// - Incarnations and versions of different members are different ones.
///
/// # What it does not promise
///
/// An order between changes of different members. Its memory holds the keys and versions of all objects, and the objects that lost their
/// key to another member when they came.
pub struct Union {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    members: Vec<Named>,
    /// Whether doubles are passed over in silence.
    overriding: bool,
    /// Of the feed that was opened last.
    status: Mutex<Vec<MemberStatus>>,
    /// What the feed that was dropped last knew.
    memory: Mutex<Option<Merge>>,
}

#[derive(Clone)]
struct Named {
    name: Arc<str>,
    source: Arc<dyn Source>,
}

/// The status of a member of a [`Union`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberStatus {
    /// The name of the source.
    pub name: Arc<str>,
    /// Whether all objects of the source were delivered once.
    pub synced: bool,
    /// The error of the source; `None` as soon as it delivers again.
    pub error: Option<Error>,
}

impl Union {
    /// A union without members.
    pub fn of(name: &str) -> Self {
        let shared = Shared {
            name: name.into(),
            members: Vec::new(),
            overriding: false,
            status: Mutex::default(),
            memory: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Adds a member, after those that were added before.
    #[must_use]
    pub fn member(self, source: impl Source) -> Self {
        let name: Arc<str> = source.name().into();
        self.with(|shared| shared.members.push(Named { name, source: Arc::new(source) }))
    }

    /// Has members override later ones, which is no conflict then.
    #[must_use]
    pub fn overriding(self) -> Self {
        self.with(|shared| shared.overriding = true)
    }

    /// The status of each member, of the feed that was opened last.
    pub fn status(&self) -> Vec<MemberStatus> {
        self.shared.status().clone()
    }

    fn with(self, change: impl FnOnce(&mut Shared)) -> Self {
        let Shared { name, members, overriding, .. } = &*self.shared;
        let mut shared = Shared {
            name: name.clone(),
            members: members.clone(),
            overriding: *overriding,
            status: Mutex::default(),
            memory: Mutex::default(),
        };
        change(&mut shared);
        Self { shared: Arc::new(shared) }
    }

    fn named(&self, version: &Version) -> Option<(&Named, Version)> {
        let (member, version) = versions::untag(version)?;
        Some((self.shared.members.get(member)?, version))
    }
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Vec<MemberStatus>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> MutexGuard<'_, Option<Merge>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all members have a log.
    fn has_log(&self) -> bool {
        self.members.iter().all(|member| member.source.capabilities().follow == Follow::Log)
    }
}

impl Source for Union {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn identity(&self) -> String {
        let members: Vec<String> =
            self.shared.members.iter().map(|member| member.source.identity()).collect();
        format!("{} {} {members:?}", self.shared.name, self.shared.overriding)
    }

    fn capabilities(&self) -> Capabilities {
        let members = &self.shared.members;
        let follow = if self.shared.has_log() { Follow::Log } else { Follow::Hints };
        let writes_status = members.iter().any(|member| member.source.capabilities().status_write_back);
        // What has to be confirmed is confirmed here.
        Capabilities::new(Order::Opaque, follow).status_write_back(writes_status)
    }

    fn open(&self, start: Start) -> Feed {
        feed::open(Arc::clone(&self.shared), start)
    }

    /// Of a union in a union, the innermost source.
    fn origin(&self, version: &Version) -> Option<Arc<str>> {
        let (member, version) = self.named(version)?;
        Some(member.source.origin(&version).unwrap_or_else(|| Arc::clone(&member.name)))
    }

    fn drift(&self) -> u64 {
        self.shared.members.iter().map(|member| member.source.drift()).sum()
    }

    fn gauges(&self) -> Vec<SourceGauge> {
        self.shared.members.iter().flat_map(|member| member.source.gauges()).collect()
    }

    fn write_status(&self, mut status: ObjectStatus) -> StatusWritten {
        match self.named(&status.version) {
            Some((member, version)) => {
                status.version = version;
                member.source.write_status(status)
            }
            None => {
                let said =
                    format!("{}: {} is no version of {}", self.shared.name, status.version, status.key);
                Box::pin(ready(Err(Error::Expired(said))))
            }
        }
    }
}

impl Clone for Union {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl fmt::Debug for Union {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<&str> = self.shared.members.iter().map(|member| &*member.name).collect();
        f.debug_struct("Union")
            .field("name", &self.shared.name)
            .field("members", &members)
            .finish_non_exhaustive()
    }
}
