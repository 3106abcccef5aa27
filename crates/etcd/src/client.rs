use std::fmt;

use crate::cluster::{Disarm, Member, MemberList, Members, MoveLeader, Status};
use crate::duplex::Duplex;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::grpc;
use crate::keys::Header;
use crate::kv::{Compaction, Delete, Deleted, Done, Found, Put, PutDone, Range};
use crate::lease::{Grant, KeepAlive, Lease, Revoke};
use crate::message::{Decode, Encode, Nothing};
use crate::session::{Kind, Session};
use crate::settings::ClientBuilder;
use crate::txn::{Txn, TxnDone};
use crate::watcher::Watcher;

/// A client of one etcd cluster. A handle: clones share the connection.
///
/// A call goes to the endpoint that answered last, or [leads](Self::find_leader). If that cannot be reached, or sees no leader, the next one is
/// asked; a write only if it is certain that it was not sent. See [`ClientBuilder`] for deadlines and credentials.
///
/// Futures may be dropped at any time. A write whose future was dropped may happen nevertheless.
#[derive(Clone)]
pub struct Client {
    session: Session,
}

impl Client {
    /// A client that asks these endpoints: `https://a:2379`.
    pub fn builder<E: Into<String>>(endpoints: impl IntoIterator<Item = E>) -> ClientBuilder {
        ClientBuilder::new(endpoints.into_iter().map(Into::into).collect())
    }

    /// Reads keys.
    pub async fn range(&self, range: &Range) -> Result<Found, Error> {
        self.call("/etcdserverpb.KV/Range", range, Kind::Read).await
    }

    /// Writes a key.
    pub async fn put(&self, put: &Put) -> Result<PutDone, Error> {
        self.call("/etcdserverpb.KV/Put", put, Kind::Write).await
    }

    /// Deletes keys.
    pub async fn delete(&self, delete: &Delete) -> Result<Deleted, Error> {
        self.call("/etcdserverpb.KV/DeleteRange", delete, Kind::Write).await
    }

    /// Runs a transaction.
    pub async fn txn(&self, txn: &Txn) -> Result<TxnDone, Error> {
        self.call("/etcdserverpb.KV/Txn", txn, Kind::Write).await
    }

    /// Forgets what was before a revision. Reads and watches at older ones are refused from then on. With `physical`, waits until it is
    /// gone from the disk, too.
    pub async fn compact(&self, revision: i64, physical: bool) -> Result<Header, Error> {
        let compaction = Compaction { revision, physical };
        let done: Done = self.call("/etcdserverpb.KV/Compact", &compaction, Kind::Write).await?;
        Ok(done.0)
    }

    /// Makes a lease of so many seconds. etcd may give more.
    pub async fn lease_grant(&self, seconds: i64) -> Result<Lease, Error> {
        self.call("/etcdserverpb.Lease/LeaseGrant", &Grant(seconds), Kind::Write).await
    }

    /// Ends a lease: its keys are deleted.
    pub async fn lease_revoke(&self, id: i64) -> Result<Header, Error> {
        let done: Done = self.call("/etcdserverpb.Lease/LeaseRevoke", &Revoke(id), Kind::Write).await?;
        Ok(done.0)
    }

    /// A stream on which leases are kept alive.
    pub async fn keep_alive(&self) -> Result<KeepAlive, Error> {
        let stream = Duplex::open(&self.session, "/etcdserverpb.Lease/LeaseKeepAlive").await?;
        Ok(KeepAlive::new(stream, self.session.settings().timeout))
    }

    /// A stream with any number of watches.
    pub async fn watcher(&self) -> Result<Watcher, Error> {
        Ok(Watcher::new(Duplex::open(&self.session, "/etcdserverpb.Watch/Watch").await?))
    }

    /// How the member that is asked is doing.
    pub async fn status(&self) -> Result<Status, Error> {
        self.call("/etcdserverpb.Maintenance/Status", &Nothing, Kind::Read).await
    }

    /// Has further calls go to the endpoint whose member leads: what others are asked, they hand on to it, or ask it how far they may answer by themselves. Calls
    /// and streams that have begun stay where they are. Gives whether an endpoint says within a second that it leads; if none does, everything
    /// stays as it is.
    pub async fn find_leader(&self) -> Result<bool, Error> {
        self.session.find_leader().await
    }

    /// Has another member lead. Only the one that leads can be asked for it.
    pub async fn move_leader(&self, to: u64) -> Result<(), Error> {
        self.call::<Done>("/etcdserverpb.Maintenance/MoveLeader", &MoveLeader(to), Kind::Write)
            .await
            .map(drop)
    }

    /// Gives the space that compaction has freed back to the file system, on the member that is asked, which answers nobody meanwhile.
    pub async fn defragment(&self) -> Result<(), Error> {
        self.call::<Done>("/etcdserverpb.Maintenance/Defragment", &Nothing, Kind::Write).await.map(drop)
    }

    /// Takes back the alarm of a member that there is no space left (`NOSPACE`), once there is some.
    pub async fn disarm_no_space(&self, member: u64) -> Result<(), Error> {
        self.call::<Done>("/etcdserverpb.Maintenance/Alarm", &Disarm(member), Kind::Write).await.map(drop)
    }

    /// The members of the cluster.
    pub async fn members(&self) -> Result<Vec<Member>, Error> {
        let members: Members = self.call("/etcdserverpb.Cluster/MemberList", &MemberList, Kind::Read).await?;
        Ok(members.0)
    }

    async fn call<M: Decode>(
        &self,
        path: &'static str,
        message: &impl Encode,
        kind: Kind,
    ) -> Result<M, Error> {
        let frame = grpc::frame(message)?;
        Ok(M::decode(&self.session.ask(path, frame, kind).await?)?)
    }
}

impl ClientBuilder {
    /// The client. It connects when it is asked for something.
    ///
    /// # Errors
    ///
    /// If there is no endpoint, or one of them cannot be read.
    pub fn build(&self) -> Result<Client, Error> {
        if self.endpoints.is_empty() {
            return Err(Error::Settings("there is no endpoint".into()));
        }
        let endpoints: Result<Vec<Endpoint>, Error> =
            self.endpoints.iter().map(|text| Endpoint::parse(text)).collect();
        Ok(Client { session: Session::new(self.clone(), endpoints?) })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(self.session.settings()).finish()
    }
}
