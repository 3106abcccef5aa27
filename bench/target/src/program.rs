//! What the programs need that measure servers.

use std::path::PathBuf;

use tokio::signal::unix::{SignalKind, signal};

use crate::Result;

/// A program that Cargo put beside this one, or the one that was named instead. The package is what builds it.
///
/// # Errors
///
/// If it is not there.
pub fn beside(named: Option<PathBuf>, name: &str, package: &str) -> Result<PathBuf> {
    let program = match named {
        Some(program) => program,
        None => std::env::current_exe()?.with_file_name(name),
    };
    match program.exists() {
        true => Ok(program),
        false => Err(format!("there is no {}: cargo build --release -p {package}", program.display()).into()),
    }
}

/// Does some work on this thread, unless the program is asked to end. Whatever comes first, all that was started is dropped, and so
/// ended. One thread: it is cheaper than several, and those who are measured need the cores.
///
/// # Errors
///
/// If it was asked to end.
pub fn unless_ended<T>(work: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            found = work => Ok(found),
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
            _ = terminate.recv() => Err("terminated".into()),
        }
    })
}
