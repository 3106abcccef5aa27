use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process;

use watchkeeper_apiserver::front::{Drained, Listener, raise_open_files};
use watchkeeper_core::Key;
use watchkeeper_gateway::ai::RecordTable;
use watchkeeper_gateway::ai::records::Destinations;
use watchkeeper_gateway::net::AddressPool;
use watchkeeper_gateway::object::DEFAULT_NAMESPACE;
use watchkeeper_gateway::{Admin, BudgetStore, From, Gateway, Handle, Options, Otlp, Settings};
use watchkeeper_reactor::source;

use super::Gateway as Arguments;
use super::handover;
use crate::failure::Failure;
use crate::monitor::{Monitor, Part};
use crate::stopping::Signals;
use crate::{caution, host, logging};

/// What collectors of spans know it by.
const SERVICE: &str = "watchkeeper-gateway";

/// Serves until a signal.
pub(super) fn run(arguments: Arguments) -> Result<(), Failure> {
    let inherited = Listener::inherited().map_err(Failure::input)?;
    let admin = arguments.admin()?;
    let gateways = AddressPool::parse(&arguments.gateway_addresses)
        .map_err(|error| Failure::input(format!("--gateway-addresses {error}")))?;
    let settings = Settings { addresses: addresses(&arguments.listen)?, gateways, ..Settings::default() };
    // What can be known to be wrong is said before anything is opened.
    let sources = arguments.from.iter().map(|from| parse(from)).collect::<Result<Vec<_>, _>>()?;
    let records = arguments.records_database.as_deref().map(record_table).transpose()?;
    let budgets = arguments.share_budgets.as_deref().map(budgets).transpose()?;
    logging::begin_plain(&arguments.log)?;
    caution::disable_core_dumps();
    raise_open_files();
    watchkeeper_memory::start_trimming().map_err(Failure::running)?;
    let runtime = host::runtime()?;
    let done = runtime.block_on(serve(arguments, admin, settings, (sources, records, budgets), inherited));
    runtime.shutdown_background();
    done
}

/// Where objects come from; `None` is the cluster.
type Parsed = Option<std::sync::Arc<dyn watchkeeper_core::Source>>;

fn parse(from: &str) -> Result<Parsed, Failure> {
    if from == "kubernetes" {
        return Ok(None);
    }
    match source::is_url(from) {
        true => source::open(from, Path::new(""))
            .map(Some)
            .map_err(|error| Failure::input(format!("--from {error}"))),
        false => Err(Failure::input(format!(
            "--from {from:?} is neither kubernetes nor a URL: for files, file:{from}"
        ))),
    }
}

/// Where budgets are shared.
enum Budgets {
    Cluster,
    Database(BudgetStore),
}

fn budgets(url: &str) -> Result<Budgets, Failure> {
    match url {
        "kubernetes" => Ok(Budgets::Cluster),
        url => BudgetStore::from_url(url)
            .map(Budgets::Database)
            .map_err(|error| Failure::input(format!("--share-budgets: {error}"))),
    }
}

/// The table of a URL.
pub(super) fn record_table(url: &str) -> Result<RecordTable, Failure> {
    RecordTable::from_url(url).map_err(|error| Failure::input(format!("--records-database: {error}")))
}

/// `NAME=ADDRESS`, or `NAMESPACE/NAME=ADDRESS`.
fn addresses(listen: &[String]) -> Result<HashMap<Key, SocketAddr>, Failure> {
    let read = |text: &String| {
        let wrong = || Failure::input(format!("--listen {text:?} is not of the form NAME=ADDRESS:PORT"));
        let (name, address) = text.split_once('=').ok_or_else(wrong)?;
        let (namespace, name) = name.split_once('/').unwrap_or((DEFAULT_NAMESPACE, name));
        Ok((Key::new(Some(namespace), name), address.parse().map_err(|_| wrong())?))
    };
    listen.iter().map(read).collect()
}

async fn serve(
    arguments: Arguments,
    admin: Option<SocketAddr>,
    settings: Settings,
    (sources, records, budgets): (Vec<Parsed>, Option<RecordTable>, Option<Budgets>),
    mut inherited: Vec<Listener>,
) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let mut upgrades = handover::Requests::listen()?;
    let mut from = Vec::new();
    for source in sources {
        from.push(match source {
            Some(source) => From::Source(source),
            None => From::Kubernetes(arguments.cluster.connection().await?),
        });
    }
    let access_log = match &arguments.access_log {
        Some(file) => Some((log_output(file)?, arguments.access_log_sample)),
        None => None,
    };
    let admin = admin.map(|address| handover::socket("admin", address, &mut inherited)).transpose()?;
    let metrics = arguments.metrics_addr;
    let metrics = metrics.map(|address| handover::socket("metrics", address, &mut inherited)).transpose()?;
    let shared: Vec<Listener> =
        [&admin, &metrics].into_iter().flatten().filter_map(|socket| socket.try_clone().ok()).collect();
    let options = Options {
        from,
        settings,
        state: arguments.state.clone(),
        access_log,
        otlp: arguments.otlp.clone().map(|endpoint| Otlp {
            endpoint,
            one_in: arguments.otlp_sample,
            service: SERVICE.to_owned(),
        }),
        sockets: inherited,
        records: Destinations { directory: arguments.records.clone(), table: records },
        share_budgets: match budgets {
            Some(Budgets::Cluster) => Some(BudgetStore::Kubernetes(arguments.cluster.connection().await?)),
            Some(Budgets::Database(store)) => Some(store),
            None => None,
        },
        ..Options::default()
    };
    let gateway = Gateway::start(options).map_err(Failure::running)?;
    let admin = match admin {
        Some(socket) => Some(Admin::serve(socket, gateway.handle()).map_err(Failure::running)?),
        None => None,
    };
    if let Some(admin) = &admin {
        tracing::info!("admin endpoint on http://{}/", admin.address());
    }
    let monitor = match metrics {
        Some(socket) => {
            let monitor = Monitor::start(socket)?;
            tracing::info!("metrics and probes on http://{}/", monitor.address());
            monitor.add(part(gateway.handle()));
            Some(monitor)
        }
        None => None,
    };
    let mut handle = gateway.handle().clone();
    let serving = async {
        handle.ready().await;
        tracing::info!("serving {} routes", handle.table().routes().count());
        handover::tell_ready().await;
        watchkeeper_memory::release_start();
        handover::until_replaced(&mut upgrades, &handle, &shared).await;
    };
    let is_replaced = tokio::select! {
        () = serving => true,
        _ = signals.next() => false,
    };
    tracing::info!("stopping: requests may take {:?} to end; another signal ends them", arguments.grace);
    let ending = async {
        match is_replaced {
            true => gateway.hand_over(arguments.grace).await,
            false => gateway.stop(arguments.grace).await,
        }
    };
    tokio::select! {
        drained = ending => {
            if drained == Drained::CutOff {
                tracing::warn!("requests aborted: they did not end within {:?}", arguments.grace);
            }
        }
        number = signals.next() => process::exit(128 + number),
    }
    if let Some(admin) = admin {
        admin.stop().await;
    }
    if let Some(monitor) = monitor {
        monitor.stop().await;
    }
    Ok(())
}

/// What can be seen of a gateway from elsewhere: not what its objects say.
pub(crate) fn part(handle: &Handle) -> Part {
    let (counted, asked) = (handle.clone(), handle.clone());
    Part {
        name: "watchkeeper-gateway".to_owned(),
        metrics: Box::new(move || counted.metrics()),
        ready: Box::new(move || match asked.readiness() {
            (true, _) => Ok(()),
            (false, notes) => {
                Err(format!("not ready, for {} reasons; the admin endpoint has them", notes.len()))
            }
        }),
    }
}

fn log_output(file: &Path) -> Result<Box<dyn Write + Send>, Failure> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(io::stdout()));
    }
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let opened =
        opened.map_err(|error| Failure::input(format!("--access-log {}: {error}", file.display())))?;
    Ok(Box::new(opened))
}
