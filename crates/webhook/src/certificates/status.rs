use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use watchkeeper_front::{CertificateSource, ServerCertificate};

/// Whether the webhooks of this process can be asked, or why not.
#[derive(Clone)]
pub(crate) struct Status(Arc<Mutex<Result<(), String>>>);

impl Status {
    pub(crate) fn new(why_not: &str) -> Self {
        Self(Arc::new(Mutex::new(Err(why_not.to_owned()))))
    }

    /// Says how it is. What is news goes into the log.
    pub(crate) fn set(&self, state: Result<(), String>) {
        let mut current = self.0.lock();
        if *current == state {
            return;
        }
        match &state {
            Ok(()) => tracing::info!("webhooks are published, and the own certificate is believed"),
            Err(why) => tracing::warn!("webhooks cannot be asked: {why}"),
        }
        *current = state;
    }

    pub(crate) fn get(&self) -> Result<(), String> {
        self.0.lock().clone()
    }
}

/// The certificate that is shown at the moment.
#[derive(Clone, Default)]
pub(crate) struct ShownCertificate(Arc<RwLock<Option<ServerCertificate>>>);

impl ShownCertificate {
    pub(crate) fn set(&self, certificate: ServerCertificate) {
        *self.0.write() = Some(certificate);
    }
}

impl CertificateSource for ShownCertificate {
    fn certificate(&self, _host: Option<&str>) -> Option<ServerCertificate> {
        self.0.read().clone()
    }
}
