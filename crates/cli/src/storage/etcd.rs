//! How an etcd cluster is reached, as options.

use std::path::PathBuf;

use clap::Args;
use watchkeeper_etcd::Client;

use crate::failure::Failure;

/// The options that say how to talk to an etcd cluster.
#[derive(Args)]
pub(crate) struct EtcdArgs {
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
}

impl EtcdArgs {
    /// A client of the cluster that has these members. It connects when it is asked for something.
    pub(crate) fn client(&self, endpoints: &[String]) -> Result<Client, Failure> {
        let mut client = Client::builder(endpoints);
        if let Some(file) = &self.etcd_cafile {
            client = client.ca_file(file);
        }
        if let (Some(certificate), Some(key)) = (&self.etcd_certfile, &self.etcd_keyfile) {
            client = client.identity_files(certificate, key);
        }
        if let (Some(name), Some(file)) = (&self.etcd_user, &self.etcd_password_file) {
            client = client.password_file(name, file);
        }
        client.build().map_err(Failure::input)
    }
}
