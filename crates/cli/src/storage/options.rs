//! Where objects are kept, as options.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use tokio::runtime::Runtime;
use watchkeeper_apiserver::UpstreamLayout;
use watchkeeper_etcd::{Client, SnapshotFile};
use watchkeeper_storage::{
    self as storage, Embedded, Etcd, EtcdOptions, Foreign, Layout, Memory, Options, Snapshot, Storage, Window,
};
use watchkeeper_supervision::Supervisor;

use crate::duration;
use crate::failure::Failure;
use crate::storage::etcd::EtcdArgs;

/// How long `serve` waits for an etcd that does not answer yet.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How often it is tried.
const START_INTERVAL: Duration = Duration::from_millis(500);

/// How often the log says that it is waited for.
const TOLD_INTERVAL: Duration = Duration::from_secs(10);

/// The options of `serve` that say where objects are kept.
#[derive(Args)]
pub(crate) struct StorageArgs {
    /// Keep objects, certificates and tokens in this directory; with --storage etcd, certificates and tokens only
    #[arg(long, value_name = "DIR", conflicts_with = "in_memory")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Keep everything in memory, and forget it at the end
    #[arg(long)]
    in_memory: bool,
    /// Where objects are kept: by this server, in an etcd cluster that several servers share, or where a kube-apiserver keeps its own
    ///
    /// Servers that share a cluster also share certificates and tokens: copy the folder credentials/ of --data-dir to each of them. What
    /// a kube-apiserver has in its etcd (--etcd-endpoints), or in a snapshot of it (--etcd-snapshot), can only be looked at (--read-only).
    #[arg(long, value_enum, default_value = "embedded")]
    storage: Kind,
    /// The members of the etcd cluster, separated by commas: https://a:2379,https://b:2379
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    etcd_endpoints: Vec<String>,
    /// What all keys begin with in etcd [default: /watchkeeper, and /registry for those of a kube-apiserver]
    #[arg(long, value_name = "PREFIX")]
    etcd_prefix: Option<String>,
    /// A file that etcdctl snapshot save has written, with the objects of a kube-apiserver
    #[arg(long, value_name = "FILE", conflicts_with = "etcd_endpoints")]
    etcd_snapshot: Option<PathBuf>,
    #[command(flatten)]
    etcd: EtcdArgs,
    /// How often old revisions of etcd are compacted, by one of the servers; 0 leaves it to others
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_any, default_value = "5m")]
    etcd_compaction_interval: Duration,
    /// When a write is acknowledged: on the disk, or handed to the operating system
    #[arg(long, value_enum, default_value = "sync")]
    durability: Durability,
    /// How long watches and paged lists can go back
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "5m30s")]
    history: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Embedded,
    Etcd,
    KubeApiserver,
}

#[derive(Clone, Copy, ValueEnum)]
enum Durability {
    Sync,
    Relaxed,
}

impl StorageArgs {
    /// Opens the storage, whose tasks run on this runtime, and are watched over by this supervisor. One that is only read is not written to, and need not be this server's own.
    pub(crate) fn open(
        &self,
        runtime: &Runtime,
        read_only: bool,
        supervisor: &Supervisor,
    ) -> Result<Arc<dyn Storage>, Failure> {
        let durability = match self.durability {
            Durability::Sync => storage::Durability::Sync,
            Durability::Relaxed => storage::Durability::Relaxed,
        };
        let window = Window { age: self.history, ..Window::default() };
        let options = Options { window, durability, ..Options::default() };
        if self.etcd_snapshot.is_some() && self.storage != Kind::KubeApiserver {
            return Err(Failure::input("--etcd-snapshot is for --storage kube-apiserver"));
        }
        match self.storage {
            Kind::Embedded => self.open_embedded(options, read_only),
            Kind::Etcd => {
                let etcd =
                    EtcdOptions { may_lead: !read_only, ..self.etcd_options("/watchkeeper", supervisor)? };
                let etcd = match read_only {
                    true => EtcdOptions { compaction_interval: None, ..etcd },
                    false => etcd,
                };
                self.open_etcd(runtime, etcd, options)
            }
            Kind::KubeApiserver if !read_only => {
                Err(Failure::input("the objects of a kube-apiserver can only be looked at: add --read-only"))
            }
            Kind::KubeApiserver => self.open_upstream(runtime, options, supervisor),
        }
    }

    fn open_embedded(&self, options: Options, read_only: bool) -> Result<Arc<dyn Storage>, Failure> {
        if !self.etcd_endpoints.is_empty() {
            return Err(Failure::input("--etcd-endpoints has no effect without --storage etcd"));
        }
        match &self.data_dir {
            // As it is now; another server may go on writing there.
            Some(directory) if read_only => {
                let snapshot = Snapshot::of_directory(directory).map_err(Failure::running)?;
                Ok(Arc::new(Memory::of(snapshot, options)))
            }
            Some(directory) => Ok(Arc::new(Embedded::open(directory, options).map_err(Failure::running)?)),
            None if self.in_memory => Ok(Arc::new(Memory::new(options))),
            None => Err(Failure::input(
                "where should the data live? --data-dir DIR keeps it, --in-memory forgets it at the end",
            )),
        }
    }

    fn etcd_options(&self, prefix: &str, supervisor: &Supervisor) -> Result<EtcdOptions, Failure> {
        let prefix = self.etcd_prefix.as_deref().unwrap_or(prefix);
        if !prefix.starts_with('/') {
            return Err(Failure::input("--etcd-prefix has to begin with a slash"));
        }
        let interval = self.etcd_compaction_interval;
        Ok(EtcdOptions {
            prefix: prefix.to_owned(),
            compaction_interval: Some(interval).filter(|interval| !interval.is_zero()),
            supervisor: supervisor.clone(),
            ..EtcdOptions::default()
        })
    }

    fn open_etcd(
        &self,
        runtime: &Runtime,
        etcd: EtcdOptions,
        options: Options,
    ) -> Result<Arc<dyn Storage>, Failure> {
        if self.in_memory && matches!(etcd.layout, Layout::Own) {
            return Err(Failure::input("--in-memory and --storage etcd contradict each other"));
        }
        if self.etcd_endpoints.is_empty() {
            return Err(Failure::input("--storage etcd needs --etcd-endpoints"));
        }
        let client = self.etcd.client(&self.etcd_endpoints)?;
        let opened = runtime.block_on(self.wait_for_etcd(&client, &etcd, &options));
        Ok(Arc::new(opened.map_err(Failure::running)?))
    }

    /// Opens etcd, once it answers: whoever starts a machine starts both at once.
    async fn wait_for_etcd(
        &self,
        client: &Client,
        etcd: &EtcdOptions,
        options: &Options,
    ) -> Result<Etcd, storage::Error> {
        let begin = Instant::now();
        let mut told = None;
        loop {
            let opened = Etcd::open(client.clone(), etcd.clone(), options.clone()).await;
            let reason = match opened {
                Err(storage::Error::Unavailable { reason }) if begin.elapsed() < START_TIMEOUT => reason,
                opened => return opened,
            };
            if told.is_none_or(|told: Instant| told.elapsed() > TOLD_INTERVAL) {
                told = Some(Instant::now());
                let (members, left) = (self.etcd_endpoints.join(","), START_TIMEOUT - begin.elapsed());
                tracing::warn!("waiting for etcd at {members}, for {} s more: {reason}", left.as_secs());
            }
            tokio::time::sleep(START_INTERVAL).await;
        }
    }

    /// What a kube-apiserver has written: followed where it is in etcd, as it was where it is in a snapshot.
    fn open_upstream(
        &self,
        runtime: &Runtime,
        options: Options,
        supervisor: &Supervisor,
    ) -> Result<Arc<dyn Storage>, Failure> {
        let upstream = Arc::new(UpstreamLayout::new());
        let layout = Layout::Foreign(Arc::clone(&upstream) as Arc<dyn Foreign>);
        let etcd = EtcdOptions { layout, may_lead: false, ..self.etcd_options("/registry", supervisor)? };
        let storage: Arc<dyn Storage> = match &self.etcd_snapshot {
            Some(file) => {
                let snapshot = SnapshotFile::read(file).map_err(Failure::input)?;
                let prefix = etcd.prefix.trim_end_matches('/');
                let entries = snapshot.pairs.iter().filter_map(|pair| etcd.layout.entry(prefix, pair));
                let entries = entries.map(Arc::new).collect::<Vec<_>>();
                let revision = u64::try_from(snapshot.revision).unwrap_or_default();
                Arc::new(Memory::of(Snapshot::new(revision, entries), options))
            }
            None if self.etcd_endpoints.is_empty() => {
                return Err(Failure::input(
                    "--storage kube-apiserver needs --etcd-endpoints or --etcd-snapshot",
                ));
            }
            None => self.open_etcd(runtime, etcd, options)?,
        };
        for (what, count) in upstream.left_out() {
            tracing::warn!("{count} objects are not shown: {what}");
        }
        Ok(storage)
    }
}
