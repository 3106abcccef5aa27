//! Our own framework against servers that are processes: they are killed, forget their history, or lack a feature.
//!
//! Each test runs on our server, and, if it is asked for (`make test-real`), on a real kube-apiserver with etcd.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod kills;
mod kinds;
mod lists;
mod oblivion;
mod place;
mod road;

/// Makes two tests of a function that is given a server: one on ours, one on a real one.
macro_rules! on_both_servers {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_our_server() {
                super::$test(crate::place::Place::ours().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs make peers, run by make test-real"]
            async fn on_a_real_server() {
                super::$test(crate::place::Place::real("").await).await;
            }
        }
    )+};
}
pub(crate) use on_both_servers;
