//! Where objects are kept, as options.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::runtime::Runtime;
use watchkeeper_etcd::Client;
use watchkeeper_storage::{self as storage, Embedded, Etcd, EtcdOptions, Memory, Options, Storage, Window};

use crate::duration;
use crate::failure::Failure;

/// The options of `serve` that say where objects are kept.
#[derive(Args)]
pub(crate) struct StorageArgs {
    /// Keep objects, certificates and tokens in this directory; with --storage etcd, certificates and tokens only
    #[arg(long, value_name = "DIR", conflicts_with = "in_memory")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Keep everything in memory, and forget it at the end
    #[arg(long)]
    in_memory: bool,
    /// Where objects are kept: by this server, or in an etcd cluster that several servers share
    ///
    /// Servers that share a cluster also share certificates and tokens: copy the folder credentials/ of --data-dir to each of them.
    #[arg(long, value_enum, default_value = "embedded")]
    storage: Kind,
    /// The members of the etcd cluster, separated by commas: https://a:2379,https://b:2379
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    etcd_endpoints: Vec<String>,
    /// What all keys begin with in etcd
    #[arg(long, value_name = "PREFIX", default_value = "/watchkeeper")]
    etcd_prefix: String,
    /// The certificates by which the members of the etcd cluster are trusted [default: those of the system]
    #[arg(long, value_name = "FILE")]
    etcd_cafile: Option<PathBuf>,
    /// The certificate to show to etcd
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    etcd_certfile: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    etcd_keyfile: Option<PathBuf>,
    /// The name to log in to etcd with
    #[arg(long, value_name = "NAME", requires = "etcd_password_file")]
    etcd_user: Option<String>,
    /// The file with its password
    #[arg(long, value_name = "FILE", requires = "etcd_user")]
    etcd_password_file: Option<PathBuf>,
    /// How often old revisions of etcd are compacted, by one of the servers; 0 leaves it to others
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "5m")]
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
}

#[derive(Clone, Copy, ValueEnum)]
enum Durability {
    Sync,
    Relaxed,
}

impl StorageArgs {
    /// Opens the storage, whose tasks run on this runtime.
    pub(crate) fn open(&self, runtime: &Runtime) -> Result<Arc<dyn Storage>, Failure> {
        let durability = match self.durability {
            Durability::Sync => storage::Durability::Sync,
            Durability::Relaxed => storage::Durability::Relaxed,
        };
        let window = Window { age: self.history, ..Window::default() };
        let options = Options { window, durability, ..Options::default() };
        if self.storage == Kind::Etcd {
            return self.open_etcd(runtime, options);
        }
        if !self.etcd_endpoints.is_empty() {
            return Err(Failure::input("--etcd-endpoints has no effect without --storage etcd"));
        }
        match &self.data_dir {
            Some(directory) => Ok(Arc::new(Embedded::open(directory, options).map_err(Failure::running)?)),
            None if self.in_memory => Ok(Arc::new(Memory::new(options))),
            None => Err(Failure::input(
                "where should the data live? --data-dir DIR keeps it, --in-memory forgets it at the end",
            )),
        }
    }

    fn open_etcd(&self, runtime: &Runtime, storage: Options) -> Result<Arc<dyn Storage>, Failure> {
        if self.in_memory {
            return Err(Failure::input("--in-memory and --storage etcd contradict each other"));
        }
        if self.etcd_endpoints.is_empty() {
            return Err(Failure::input("--storage etcd needs --etcd-endpoints"));
        }
        if !self.etcd_prefix.starts_with('/') {
            return Err(Failure::input("--etcd-prefix has to begin with a slash"));
        }
        let mut client = Client::builder(&self.etcd_endpoints);
        if let Some(file) = &self.etcd_cafile {
            client = client.ca_file(file);
        }
        if let (Some(certificate), Some(key)) = (&self.etcd_certfile, &self.etcd_keyfile) {
            client = client.identity_files(certificate, key);
        }
        if let (Some(name), Some(file)) = (&self.etcd_user, &self.etcd_password_file) {
            client = client.password_file(name, file);
        }
        let client = client.build().map_err(Failure::input)?;
        let interval = self.etcd_compaction_interval;
        let options = EtcdOptions {
            prefix: self.etcd_prefix.clone(),
            compaction_interval: Some(interval).filter(|interval| !interval.is_zero()),
            ..EtcdOptions::default()
        };
        let opened = runtime.block_on(Etcd::open(client, options, storage)).map_err(Failure::running)?;
        Ok(Arc::new(opened))
    }
}
