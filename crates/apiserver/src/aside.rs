//! Threads for what takes long, beside those that answer everybody else.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio_util::task::AbortOnDropHandle;

/// How much less these threads are entitled to a processor: a tenth of what others are, and all that others leave. Elsewhere
/// than on Linux, a priority is the whole process's, and stays.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// A runtime of its own, of half the processors and with a lower priority, for requests that take milliseconds of computing.
///
/// Where somebody else waits for a processor, they get it first, and get it at once: the system does not let a thread of
/// a lower priority go on to the end of its turn. The threads are started when they are needed for the first time.
#[derive(Default)]
pub(crate) struct Aside {
    /// `None` if there can be no such threads.
    runtime: OnceLock<Option<Runtime>>,
}

impl Aside {
    /// Does something there, and waits for it. It is dropped with the future that this returns. In a program that has one
    /// thread for everything, that does it.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let current = Handle::try_current().map(|handle| handle.runtime_flavor());
        let runtime = match current {
            Ok(RuntimeFlavor::MultiThread) => self.runtime.get_or_init(start).as_ref(),
            _ => None,
        };
        let Some(runtime) = runtime else { return work.await };
        match AbortOnDropHandle::new(runtime.spawn(work)).await {
            Ok(done) => done,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime is shut down with the server, and this with it.
            Err(_) => std::future::pending().await,
        }
    }
}

fn start() -> Option<Runtime> {
    let threads = available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1));
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("aside")
        .enable_all()
        .on_thread_start(|| {
            // With the same priority as everything else it works as well, if not as smoothly.
            #[cfg(target_os = "linux")]
            let _ = rustix::process::nice(NICE);
        })
        .build();
    runtime.inspect_err(|error| tracing::warn!(%error, "no threads for large requests could be started; they share those of other requests")).ok()
}

impl Drop for Aside {
    fn drop(&mut self) {
        // The server may be dropped by one of its own threads, which may not wait.
        if let Some(Some(runtime)) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[tokio::test(flavor = "multi_thread")]
    async fn work_is_done_by_threads_that_yield_to_others() {
        let aside = Aside::default();
        let name = aside.run(async { thread::current().name().map(str::to_owned) }).await;
        assert_eq!(name.as_deref(), Some("aside"));
        #[cfg(target_os = "linux")]
        {
            // The 19th field after the name of the thread.
            let nice = "/proc/thread-self/stat";
            let nice = move || {
                let stat = std::fs::read_to_string(nice).unwrap();
                stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse::<i32>().unwrap()
            };
            let here = nice();
            assert_eq!(aside.run(async move { nice() }).await, (here + NICE).min(19));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_panics_there_panics_here_and_the_next_is_done() {
        let aside = std::sync::Arc::new(Aside::default());
        let panicking = std::sync::Arc::clone(&aside);
        let panicked = tokio::spawn(async move { panicking.run(async { panic!("on purpose") }).await });
        assert!(panicked.await.unwrap_err().is_panic());
        assert_eq!(aside.run(async { 7 }).await, 7);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_nobody_waits_for_any_more_is_dropped() {
        let aside = Aside::default();
        let (alive, dropped) = tokio::sync::oneshot::channel::<()>();
        let work = aside.run(async move {
            let _alive = alive;
            std::future::pending::<()>().await;
        });
        assert!(tokio::time::timeout(std::time::Duration::from_millis(10), work).await.is_err());
        assert!(dropped.await.is_err());
    }
}
