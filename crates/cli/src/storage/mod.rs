//! `watchkeeper storage`: takes everything that a server keeps from one place to another.

mod etcd;
mod options;
mod place;
mod progress;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use watchkeeper_apiserver::{UpstreamLayout, is_about_servers};
use watchkeeper_storage::{Foreign, Layout, Snapshot};

use crate::failure::Failure;
use crate::{caution, host, logging};
use etcd::EtcdArgs;
use place::Place;
use progress::Line;

pub(crate) use options::StorageArgs;

/// Back up, restore and move what a server keeps
///
/// A place is the data directory of a server, a file, or an etcd cluster: https://a:2379,https://b:2379, with /PREFIX at the end if it is
/// another one than /watchkeeper. It is read at one moment, also while servers write there: what they have acknowledged before is in it,
/// and no write is in it by half. What is written is read back and compared.
///
/// Certificates and tokens are not part of it: copy the folder credentials/ of the data directory by itself, as the secret that it is.
#[derive(Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Storage {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper storage export data backup.wk                   # also while the server runs
  watchkeeper storage check backup.wk
  watchkeeper storage import backup.wk restored
  watchkeeper storage copy data https://etcd-1:2379,https://etcd-2:2379 --etcd-cafile ca.crt
  watchkeeper storage copy http://127.0.0.1:2379 data         # back to one machine
  watchkeeper storage export --kube-apiserver http://127.0.0.1:2379/registry cluster.wk

Exit codes: 0 all of it is there, 1 something failed, 2 wrong arguments, or a place that is taken.";

#[derive(Subcommand)]
enum Command {
    /// Write what a server keeps to a file
    Export {
        /// A data directory, or the URLs of an etcd cluster
        #[arg(value_name = "PLACE")]
        from: Place,
        /// The file, which must not be there yet
        file: PathBuf,
        /// The cluster is that of a kube-apiserver, whose objects are read as this server keeps them: http://127.0.0.1:2379/registry
        #[arg(long)]
        kube_apiserver: bool,
        #[command(flatten)]
        etcd: EtcdArgs,
    },
    /// Make a data directory of such a file, or write it to an etcd cluster
    Import {
        /// The file
        file: PathBuf,
        /// A directory that is empty or not there, or the URLs of an etcd cluster that has nothing under the prefix
        #[arg(value_name = "PLACE")]
        to: Place,
        #[command(flatten)]
        etcd: EtcdArgs,
    },
    /// Do both at once
    Copy {
        /// A data directory, a file, or the URLs of an etcd cluster
        from: Place,
        /// A directory that is empty or not there, or the URLs of an etcd cluster that has nothing under the prefix
        to: Place,
        /// The cluster that is copied from is that of a kube-apiserver, whose objects are read as this server keeps them
        #[arg(long)]
        kube_apiserver: bool,
        #[command(flatten)]
        etcd: EtcdArgs,
    },
    /// Read such a file, or a data directory, from beginning to end, and say what is in it
    Check {
        /// The file or the directory
        file: PathBuf,
    },
}

impl Storage {
    pub(crate) fn run(self) -> Result<(), Failure> {
        logging::begin("warn")?;
        caution::disable_core_dumps();
        match self.command {
            Command::Export { from, file, kube_apiserver, etcd } => {
                if file.exists() {
                    return Err(Failure::input(format!("{} is there already", file.display())));
                }
                let snapshot = read(&from, kube_apiserver, &etcd)?;
                let line = Line::new("writing", Some(snapshot.len()));
                let size = snapshot.to_file(&file, &|done| line.show(done)).map_err(failure)?;
                drop(line);
                say(&format!(
                    "exported {} keys at version {} from {from} to {}: {size} bytes, read back and found the same",
                    snapshot.len(),
                    snapshot.revision(),
                    file.display()
                ));
                Ok(())
            }
            Command::Import { file, to, etcd } => copy(&Place::Path(file), &to, false, &etcd),
            Command::Copy { from, to, kube_apiserver, etcd } => copy(&from, &to, kube_apiserver, &etcd),
            Command::Check { file } => {
                let snapshot = read_path(&file)?;
                say(&format!(
                    "{} is complete: {} keys of {} bytes at version {}",
                    file.display(),
                    snapshot.len(),
                    snapshot.bytes(),
                    snapshot.revision()
                ));
                Ok(())
            }
        }
    }
}

fn copy(from: &Place, to: &Place, kube_apiserver: bool, etcd: &EtcdArgs) -> Result<(), Failure> {
    let snapshot = read(from, kube_apiserver, etcd)?;
    let line = Line::new("writing", Some(snapshot.len()));
    let versions = match to {
        Place::Path(directory) => {
            caution::check_data_directory(directory)?;
            snapshot.to_directory(directory, &|done| line.show(done)).map_err(failure)?;
            format!("versions are kept: the newest is {}", snapshot.revision())
        }
        Place::Etcd { endpoints, prefix } => {
            let client = etcd.client(endpoints)?;
            let show = |done| line.show(done);
            let written = snapshot.to_etcd(&client, prefix, &show);
            host::runtime()?.block_on(written).map_err(failure)?;
            "versions are etcd's now: clients have to list again, and those that still hold an object have to read it again before they \
             write it"
                .to_owned()
        }
    };
    drop(line);
    say(&format!(
        "copied {} keys from {from} to {to}, read back and found the same\n{versions}\n\
         certificates and tokens are not part of it: copy the folder credentials/ of the data directory by itself",
        snapshot.len()
    ));
    Ok(())
}

fn read(from: &Place, kube_apiserver: bool, etcd: &EtcdArgs) -> Result<Snapshot, Failure> {
    match from {
        Place::Path(_) if kube_apiserver => {
            Err(Failure::input("--kube-apiserver is for an etcd cluster: http://127.0.0.1:2379/registry"))
        }
        Place::Path(path) => read_path(path),
        Place::Etcd { endpoints, prefix } => {
            let client = etcd.client(endpoints)?;
            let line = Line::new("reading", None);
            let show = |done| line.show(done);
            let upstream = Arc::new(UpstreamLayout::new());
            let layout = match kube_apiserver {
                true => Layout::Foreign(Arc::clone(&upstream) as Arc<dyn Foreign>),
                false => Layout::Own,
            };
            let reading = Snapshot::of_etcd(&client, prefix, &layout, &show);
            let snapshot = host::runtime()?.block_on(reading).map_err(failure)?;
            for (what, count) in upstream.left_out() {
                tracing::warn!("{count} objects are left out: {what}");
            }
            if !kube_apiserver && snapshot.entries().any(|entry| is_of_kube_apiserver(&entry.value)) {
                return Err(Failure::input(format!(
                    "{from} was written by a kube-apiserver: --kube-apiserver reads its objects as this server keeps them"
                )));
            }
            if snapshot.is_empty() {
                return Err(Failure::input(format!("there is nothing under {from}")));
            }
            Ok(movable(&snapshot))
        }
    }
}

fn read_path(path: &Path) -> Result<Snapshot, Failure> {
    let read = match path.is_dir() {
        true => Snapshot::of_directory(path),
        false => Snapshot::of_file(path),
    };
    Ok(movable(&read.map_err(failure)?))
}

/// What is worth taking along: the objects, and not what servers that share a storage tell each other.
fn movable(snapshot: &Snapshot) -> Snapshot {
    snapshot.retain(|key| !is_about_servers(key))
}

/// Whether a value is one of a kube-apiserver: in protobuf, or encrypted.
fn is_of_kube_apiserver(value: &[u8]) -> bool {
    value.starts_with(b"k8s\0") || value.starts_with(b"k8s:enc:")
}

/// Whether what was given is at fault.
fn failure(error: watchkeeper_storage::Error) -> Failure {
    match error {
        watchkeeper_storage::Error::Invalid(reason) => Failure::input(reason),
        error => Failure::running(error),
    }
}

fn say(text: &str) {
    // Whoever closed our stdout does not want to know.
    let _ = writeln!(io::stdout(), "{text}");
}
