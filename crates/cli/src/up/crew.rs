use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::task::JoinHandle;
use watchkeeper::prelude::{Connection, Manager};
use watchkeeper::runtime::Running;
use watchkeeper_workloads::{Timing, simulate};

use super::screen::Screen;
use super::{Operator, gateway};
use crate::failure::Failure;
use crate::monitor::{Monitor, Part};

/// How often to look whether somebody is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long the parts of `up` may take to become ready before it fails.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Who works on the objects, in this process, through the same API as everybody.
pub(crate) struct Crew {
    connection: Connection,
    running: Vec<Running>,
    /// On its way, while others start.
    gateway: Option<JoinHandle<Result<gateway::Running, Failure>>>,
    /// Shows what everybody counts.
    monitor: Arc<Monitor>,
}

impl Crew {
    /// Nobody yet, and the way to the server.
    pub(crate) async fn connect(kubeconfig: &Path, monitor: Arc<Monitor>) -> Result<Self, Failure> {
        let connection = Connection::from_kubeconfig(kubeconfig, None).await.map_err(Failure::running)?;
        Ok(Self { connection, running: Vec::new(), gateway: None, monitor })
    }

    fn manager(&self, name: &str) -> Manager {
        Manager::new(name, self.connection.clone())
    }

    pub(crate) async fn start_operator(
        &mut self,
        operator: Operator,
        screen: &mut Screen,
    ) -> Result<(), Failure> {
        let (name, manager, said) = match operator {
            Operator::Webapp => {
                let manager = watchkeeper_webapp::operator(self.manager("watchkeeper-webapp"));
                let manager = watchkeeper_webapp::webhooks(manager);
                ("webapp", manager, "webapp: a Deployment and a Service for every WebApp")
            }
        };
        self.start(name, manager, screen).await?;
        screen.line("operators", said);
        Ok(())
    }

    pub(crate) async fn start_workloads(&mut self, pace: f64, screen: &mut Screen) -> Result<(), Failure> {
        let timing = match pace {
            0.0 => Timing::instant(),
            pace => Timing::default().scaled(pace),
        };
        let manager = simulate(self.manager("watchkeeper-workloads"), timing);
        self.start("workloads", manager, screen).await?;
        let ready = timing.schedule + timing.pull + timing.start + timing.ready;
        screen.line("workloads", &format!("simulated: nothing runs, pods are ready after {ready:.1?}"));
        Ok(())
    }

    /// Begins to start the gateway, with an example if there is nothing for it to serve.
    pub(crate) fn begin_gateway(&mut self) {
        let manager = self.manager("watchkeeper-gateway");
        self.gateway = Some(tokio::spawn(gateway::start(manager, self.connection.clone())));
    }

    /// Waits for the gateway.
    pub(crate) async fn wait_for_gateway(&mut self, screen: &mut Screen) -> Result<(), Failure> {
        let Some(starting) = &mut self.gateway else { return Ok(()) };
        screen.waiting("gateway", "starting");
        let gateway = starting.await.map_err(Failure::running)??;
        screen.line("gateway", gateway.said());
        if let Some(models) = gateway.models() {
            screen.line("models", models);
        }
        self.monitor.add(gateway.part());
        self.gateway = Some(tokio::spawn(async { Ok(gateway) }));
        Ok(())
    }

    async fn start(&mut self, name: &str, manager: Manager, screen: &mut Screen) -> Result<(), Failure> {
        screen.waiting("operators", &format!("starting {name}"));
        let running = manager.start().await.map_err(Failure::running)?;
        self.monitor.add(part(name, &running));
        let ready = tokio::time::timeout(TIMEOUT, async {
            let mut shown = String::new();
            loop {
                let missing = running.not_ready();
                let Some((check, why)) = missing.first() else { return };
                let waits = format!("{name} waits for {check}: {why}");
                if waits != shown {
                    screen.waiting("operators", &waits);
                    shown = waits;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        let ready = ready.await;
        let missing = running.not_ready();
        self.running.push(running);
        match (ready, missing.first()) {
            (Err(_), Some((check, why))) => {
                Err(Failure::running(format!("{name} is not ready after {TIMEOUT:?}: {check}: {why}")))
            }
            _ => Ok(()),
        }
    }

    /// Stops everybody in order. The last to start is the first to stop.
    pub(crate) async fn stop(&mut self) {
        // One that has not come up yet is waited for: it is a matter of seconds.
        if let Some(Ok(Ok(gateway))) = OptionFuture::from(self.gateway.take()).await {
            gateway.stop().await;
        }
        while let Some(running) = self.running.pop() {
            running.stop().await;
        }
    }
}

/// What can be seen of a manager.
fn part(name: &str, running: &Running) -> Part {
    let (counted, asked) = (running.observer(), running.observer());
    Part {
        name: format!("watchkeeper-{name}"),
        metrics: Box::new(move || counted.metrics()),
        ready: Box::new(move || match asked.not_ready().first() {
            Some((check, why)) => Err(format!("{check}: {why}")),
            None => Ok(()),
        }),
    }
}
