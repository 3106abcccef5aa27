//! What a manager is to those around it: probes, metrics, tasks, mistakes.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use watchkeeper_runtime::{Action, Context, Controller, Error, Manager, StartError};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{TestEnv, eventually};

fn idle() -> Controller {
    Controller::of::<Widget>().reconcile(|_: Arc<Widget>, _cx: Context<Widget>| async { Ok(Action::done()) })
}

/// Asks for a page; gives its code and its text.
async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn probes_tell_the_truth_and_metrics_have_the_names_that_dashboards_know() {
    let env = TestEnv::start().await;
    let manager = Manager::new("test", env.connection())
        .controller(idle())
        .ready_check("disk", || Ok(()))
        .serve("127.0.0.1:0".parse().unwrap());
    let running = manager.start().await.unwrap();
    let address = running.address().unwrap();
    assert_eq!(get(address, "/healthz").await, (200, "ok".to_owned()));
    let (code, text) = get(address, "/readyz").await;
    assert_eq!(code, 503);
    assert!(text.contains("[-]cache widgets.test.watchkeeper.dev failed: "), "{text}");
    assert!(text.contains("[+]disk ok"), "{text}");

    env.install::<Widget>().await;
    running.ready().await;
    assert_eq!(get(address, "/readyz").await, (200, "ok".to_owned()));
    assert!(get(address, "/readyz?verbose").await.1.contains("[+]cache widgets.test.watchkeeper.dev ok"));
    assert_eq!(get(address, "/readyz/disk").await.0, 200);
    assert_eq!(get(address, "/readyz/nothing").await.0, 404);
    assert_eq!(get(address, "/").await.0, 404);

    running.client().create(&widget("a", 1)).await.unwrap();
    eventually(|| async { running.metrics().contains(r#"result="success"} 1"#) }).await;
    let (_, metrics) = get(address, "/metrics").await;
    for name in [
        "controller_runtime_reconcile_total",
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_time_seconds_bucket",
        "controller_runtime_max_concurrent_reconciles",
        "controller_runtime_active_workers",
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_queue_duration_seconds_count",
        "workqueue_work_duration_seconds_count",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
        "workqueue_retries_total",
        "watchkeeper_informer_objects",
    ] {
        let of_controller = |line: &&str| line.starts_with(name) && line.contains("widget");
        assert!(metrics.lines().any(|line| of_controller(&line)), "{name} is not in\n{metrics}");
    }
    assert!(
        metrics.contains(r#"rest_client_requests_total{code="200",host="own",method="GET"}"#),
        "{metrics}"
    );
    running.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens after the stop");
}

#[tokio::test]
async fn an_address_that_is_taken_is_an_error_at_once() {
    let env = TestEnv::start().await;
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let error = Manager::new("test", env.connection()).serve(address).start().await.unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_name_are_a_mistake() {
    let env = TestEnv::start().await;
    let error = Manager::new("test", env.connection())
        .controller(idle())
        .controller(idle())
        .start()
        .await
        .unwrap_err();
    assert!(matches!(&error, StartError::SameName(name) if name == "widget"));
    let renamed = Controller::of::<Widget>()
        .name("other")
        .reconcile(|_: Arc<Widget>, _cx: Context<Widget>| async { Ok(Action::done()) });
    let manager = Manager::new("test", env.connection()).controller(idle()).controller(renamed);
    manager.start().await.unwrap().stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_with_options_is_what_its_controllers_see() {
    use k8s_openapi::api::core::v1::ConfigMap;
    let env = TestEnv::start().await;
    let log = crate::log::Log::default();
    let seen = log.clone();
    let controller =
        Controller::of::<ConfigMap>().reconcile(move |map: Arc<ConfigMap>, _cx: Context<ConfigMap>| {
            seen.say(map.metadata.name.clone().unwrap());
            async { Ok(Action::done()) }
        });
    let manager = Manager::new("test", env.connection())
        .cache(watchkeeper_client::Cache::of::<ConfigMap>().labels("mine=yes"))
        .controller(controller);
    let running = manager.start().await.unwrap();
    running.ready().await;
    let mut mine = config_map("mine", &[]);
    mine.metadata.labels = Some([("mine".to_owned(), "yes".to_owned())].into());
    running.client().create(&config_map("other", &[])).await.unwrap();
    running.client().create(&mine).await.unwrap();
    eventually(|| async { log.lines() == ["mine"] }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn tasks_run_beside_the_controllers_and_are_told_to_stop() {
    let env = TestEnv::start().await;
    let log = crate::log::Log::default();
    let (early, late) = (log.clone(), log.clone());
    let manager = Manager::new("test", env.connection())
        .before_caches("early", move |_client, _stop| async move {
            early.say("early");
            Ok(())
        })
        .task("late", move |_client, stop| async move {
            stop.cancelled().await;
            late.say("late");
            Ok(())
        });
    let running = manager.start().await.unwrap();
    eventually(|| async { log.lines() == ["early"] }).await;
    running.stop().await;
    assert_eq!(log.lines(), ["early", "late"]);
}

#[tokio::test]
async fn a_task_that_fails_ends_the_program_with_its_error() {
    let env = TestEnv::start().await;
    let manager = Manager::new("test", env.connection())
        .task("doomed", |_client, _stop| async { Err(Error::message("the disk is full")) });
    let ended = tokio::time::timeout(Duration::from_secs(20), manager.run()).await.unwrap();
    assert_eq!(ended.unwrap_err().to_string(), "task doomed failed: the disk is full");
}

#[tokio::test(start_paused = true)]
async fn it_runs_until_the_future_that_it_was_given_resolves() {
    let env = TestEnv::start().await;
    let (stopped, stops) = tokio::sync::oneshot::channel();
    let manager = Manager::new("test", env.connection()).task("told", |_client, stop| async move {
        stop.cancelled().await;
        let _ = stopped.send(());
        Ok(())
    });
    let begun = tokio::time::Instant::now();
    manager.run_until(tokio::time::sleep(Duration::from_secs(3600))).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(3600));
    stops.await.expect("its tasks were told to stop");

    let doomed = Manager::new("test", env.connection())
        .task("doomed", |_client, _stop| async { Err(Error::message("the disk is full")) });
    let ended = doomed.run_until(std::future::pending()).await;
    assert_eq!(ended.unwrap_err().to_string(), "task doomed failed: the disk is full");
}

#[tokio::test]
async fn what_the_command_line_asks_for_is_done_instead_of_running_until_a_future_resolves() {
    let manager = Manager::try_from_args(["test", "--kubeconfig", "no/such/file", "check-access"]).unwrap();
    let error = manager.run_until(std::future::pending()).await.unwrap_err().to_string();
    assert!(error.contains("looked at no/such/file"), "{error}");
}

#[tokio::test]
async fn without_a_kubeconfig_it_says_where_it_looked() {
    let manager = Manager::try_from_args(["test", "--kubeconfig", "no/such/file"]).unwrap();
    let error = manager.start().await.unwrap_err().to_string();
    assert!(error.contains("looked at no/such/file"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconcile_that_blocks_its_thread_shows_in_the_liveness_probe() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let block = Arc::new(std::sync::Barrier::new(2));
    let blocked = Arc::clone(&block);
    let controller = Controller::of::<Widget>().timeout(Duration::from_millis(100)).reconcile(
        move |_: Arc<Widget>, _cx: Context<Widget>| {
            let blocked = Arc::clone(&blocked);
            async move {
                blocked.wait();
                Ok(Action::done())
            }
        },
    );
    let manager =
        Manager::new("test", env.connection()).controller(controller).serve("127.0.0.1:0".parse().unwrap());
    let running = manager.start().await.unwrap();
    running.ready().await;
    let address = running.address().unwrap();
    running.client().create(&widget("a", 1)).await.unwrap();
    eventually(|| async {
        let (code, text) = get(address, "/healthz").await;
        code == 503 && text.contains("[-]controller widget failed: a reconcile has been running for ")
    })
    .await;
    block.wait();
    eventually(|| async { get(address, "/healthz").await.0 == 200 }).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_is_dropped_leaves_nothing_running() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let controller = Controller::of::<Widget>()
        .every(
            watchkeeper_runtime::Every::new(Duration::from_secs(1)),
            |_: Arc<Widget>, _cx: Context<Widget>| async { Ok(Action::done()) },
        )
        .reconcile(|_: Arc<Widget>, _cx: Context<Widget>| async { Ok(Action::done()) });
    let manager = Manager::new("test", env.connection()).controller(controller).leader_task(
        "idle",
        |_client, stop| async move {
            stop.cancelled().await;
            Ok(())
        },
    );
    let idle = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let running = manager.start().await.unwrap();
    running.ready().await;
    running.client().create(&widget("a", 1)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    drop(running);
    eventually(|| async { tokio::runtime::Handle::current().metrics().num_alive_tasks() <= idle }).await;
}
