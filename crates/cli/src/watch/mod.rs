//! `watchkeeper watch`: what changes in a cluster, or in anything else that can be watched, field by field.
//!
//! The way of a change: the server's `catalogue` says what a word means (`words`), or the word is a URL, which makes a `target`; an informer follows
//! it and writes a journal; the `follower` makes a `report` of each change, which `text` or `lines` put into words.

mod catalogue;
mod ending;
mod follower;
mod interruption;
mod lines;
mod notes;
mod report;
mod secret;
mod target;
mod text;
mod total;
mod words;

use std::collections::HashSet;
use std::io::{self, BufWriter, IsTerminal};
use std::path::Path as StdPath;
use std::time::Duration;

use clap::{Args, ValueEnum};
use futures_util::{StreamExt, stream};
use jiff::tz::TimeZone;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::{runtime, time};
use watchkeeper_connection::{Error, RequestError};
use watchkeeper_core::Freshness;
use watchkeeper_diff::Path;
use watchkeeper_informer::{Entry, Informer, SourceBackoff};
use watchkeeper_reactor::source;

use crate::cluster::{Cluster, ClusterArguments, reasons};
use crate::duration;
use crate::failure::Failure;
use ending::{nobody_reads, stopped, until};
use follower::{Follower, Initial, Output, Stop};
use notes::Notes;
use report::Filter;
use target::{Subject, Target};
use text::Style;

/// Show what changes in a cluster, a directory or a service, field by field
///
/// One line for each change: when, what, which object, who, and which fields. Survives what the connection does not, and says
/// what became of it on stderr. Of Secrets, only lengths are shown.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Watch {
    /// KIND, KIND,KIND, KIND NAME... or KIND/NAME...: any kind the server knows, by any of its names, or a category such as all;
    /// or URL...: file:PATH, http://, https://, postgres://, mysql://, sqlite:PATH
    /// or etcd://
    #[arg(value_name = "KIND", required = true)]
    words: Vec<String>,
    /// Objects of this namespace [default: that of the context]
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Objects of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Objects with these labels, such as app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Objects with these fields, such as status.phase=Running
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
    /// Only changes at or below these fields, such as spec,status.conditions
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    fields: Vec<Path>,
    /// Also fields that always move (managedFields, resourceVersion, times of conditions), and long values
    #[arg(long)]
    all_fields: bool,
    /// Lines for people, or a JSON object a line
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
    /// With -o json: the whole object after each change
    #[arg(long)]
    objects: bool,
    /// List all objects that are there, not only a few
    #[arg(long, conflicts_with = "no_initial")]
    initial: bool,
    /// List none of the objects that are there
    #[arg(long, visible_alias = "since-start")]
    no_initial: bool,
    /// End after so many changes
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    until: Option<u32>,
    /// End after this time; a failure if there were fewer changes than --until says
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// Colours; auto is on a terminal, unless $NO_COLOR is set
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    color: Colour,
    /// No notes on stderr
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper watch pods                           pods of the namespace
  watchkeeper watch deployments,pods -A            two kinds, everywhere
  watchkeeper watch deploy/web --fields spec       what somebody does to one object
  watchkeeper watch webapps --fields status.conditions
  watchkeeper watch events -A --no-initial         what happens from now on
  watchkeeper watch all -o json | jq -r .name      for programs
  watchkeeper watch job/backup --fields status.succeeded --no-initial --until 1 --timeout 10m
  watchkeeper watch file:./config/                 YAML and JSON documents in a directory
  watchkeeper watch 'file:./config/?by=path'       the same where documents have no names of their own
  watchkeeper watch 'https://shop.example.com/items.json#/items?key=/id&interval=5s'
  watchkeeper watch 'postgres://db.example.com/shop?table=routes'
  watchkeeper watch etcd://127.0.0.1:2379/prefix

Exit codes:
  0  ended by Ctrl-C, --until, --timeout, or because nobody reads any more
  1  something failed: no server, not allowed, or --timeout came before --until
  2  what was asked for cannot be: bad arguments, no kubeconfig, an unknown kind";

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

/// A person waits: ask again sooner, and more often, than a controller should.
const BACKOFF: SourceBackoff = SourceBackoff::new(Duration::from_millis(200), Duration::from_secs(2))
    .with_reset_after(Duration::from_secs(5));

/// So many entries may wait to be shown before the server has to wait.
const WAITING: usize = 1024;

impl Watch {
    /// Watches until there is a reason to end.
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.objects && self.output != Format::Json {
            return Err(Failure::input("--objects needs -o json"));
        }
        let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(Failure::running)?;
        let done = runtime.block_on(self.watch());
        // Nothing that still runs has anything to say.
        runtime.shutdown_background();
        done
    }

    async fn watch(&self) -> Result<(), Failure> {
        if self.words.iter().any(|word| source::is_url(word)) {
            return self.follow(None, self.sources()?).await;
        }
        let wanted = words::read(&self.words)?;
        let cluster = self.cluster.find().await?;
        let kinds =
            catalogue::read(&cluster.connection).await.map_err(|error| unreachable(&cluster, &error))?;
        let mut targets: Vec<Target> = Vec::new();
        for word in &wanted {
            let found = words::find(&word.kind, &kinds)?;
            let by_category = found.len() > 1;
            for kind in found {
                let namespace = self.namespace.as_ref().unwrap_or(&cluster.namespace);
                let namespace = (kind.namespaced && !self.all_namespaces).then(|| namespace.clone());
                let (subject, name) = (Subject::Kind(Box::new(kind.clone())), word.name.clone());
                targets.push(Target { subject, namespace, name, by_category });
            }
        }
        let mut named = HashSet::new();
        targets.retain(|target| named.insert((target.identity(), target.name.clone())));
        self.follow(Some(&cluster), targets).await
    }

    /// What URLs stand for.
    fn sources(&self) -> Result<Vec<Target>, Failure> {
        if let Some(word) = self.words.iter().find(|word| !source::is_url(word)) {
            return Err(Failure::input(format!(
                "{word:?} is a kind of a cluster, which cannot be watched together with URLs"
            )));
        }
        for (flag, given) in [
            ("--namespace", self.namespace.is_some()),
            ("--all-namespaces", self.all_namespaces),
            ("--selector", self.selector.is_some()),
            ("--field-selector", self.field_selector.is_some()),
        ] {
            if given {
                return Err(Failure::input(format!("{flag} is for kinds of a cluster, not for URLs")));
            }
        }
        let mut named = HashSet::new();
        let opened = self.words.iter().map(|url| source::open(url, StdPath::new("")).map(Target::of));
        let mut targets: Vec<Target> = opened.collect::<Result<_, _>>().map_err(Failure::input)?;
        targets.retain(|target| named.insert(target.identity()));
        Ok(targets)
    }

    async fn follow(&self, cluster: Option<&Cluster>, targets: Vec<Target>) -> Result<(), Failure> {
        let mut stopped = stopped()?;
        // The informers live as long as they are held.
        let mut informers = Vec::new();
        let mut journals = Vec::new();
        for (at, target) in targets.iter().enumerate() {
            let (journal, entries) = mpsc::channel(WAITING);
            let connection = cluster.map(|cluster| &cluster.connection);
            let source = target.source(connection, self.selector.as_deref(), self.field_selector.as_deref());
            let Some(source) = source else { continue };
            let informer = Informer::<Value>::builder().first_snapshot(Freshness::Newest).backoff(BACKOFF);
            informers.push(informer.recent(256).journal(journal).start(source));
            journals.push(numbered(at, entries));
        }
        let mut entries = stream::select_all(journals).ready_chunks(WAITING);
        let mut follower = self.follower(targets, cluster);
        let deadline = self.timeout.map(|timeout| time::Instant::now() + timeout);
        let mut nobody_reads = nobody_reads()?;
        let mut total = self.count(&follower, cluster);
        let end = loop {
            tokio::select! {
                biased;
                _ = &mut stopped => break Ok(()),
                _ = &mut nobody_reads => return Ok(()),
                () = until(deadline) => break self.timed_out(follower.changes()),
                Some(known) = total.next() => follower.notes.expect(known),
                Some(entries) = entries.next() => {
                    let taken = entries.into_iter().try_for_each(|(at, entry)| follower.take(at, entry));
                    let flushed = follower.flush();
                    match taken.and(flushed) {
                        Ok(()) => {}
                        Err(Stop::Enough) => break Ok(()),
                        Err(Stop::NobodyReads) => return Ok(()),
                        Err(Stop::Failed(failure)) => {
                            follower.notes.clear();
                            return Err(failure);
                        }
                    }
                }
            }
        };
        follower.sum_up();
        end
    }

    /// Finds out how many objects the first list will have, if somebody sees how it comes. Where a selector chooses, servers
    /// do not say.
    fn count<W: io::Write>(
        &self,
        follower: &Follower<W>,
        cluster: Option<&Cluster>,
    ) -> stream::BoxStream<'static, Option<usize>> {
        let Some(cluster) = cluster else { return stream::empty().boxed() };
        let chosen = self.selector.is_some() || self.field_selector.is_some();
        if chosen
            || !follower.notes.shows_progress()
            || follower.targets.iter().any(|target| target.name.is_some())
        {
            return stream::empty().boxed();
        }
        let (connection, paths) =
            (cluster.connection.clone(), follower.targets.iter().filter_map(total::path).collect());
        stream::once(async move { total::total(&connection, paths).await }).boxed()
    }

    fn follower(&self, targets: Vec<Target>, cluster: Option<&Cluster>) -> Follower<BufWriter<io::Stdout>> {
        let colour = match self.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                let unwanted = |name: &str, values: &[&str]| {
                    std::env::var_os(name).is_some_and(|value| {
                        values.is_empty() && !value.is_empty() || values.iter().any(|&it| value == it)
                    })
                };
                io::stdout().is_terminal() && !unwanted("NO_COLOR", &[]) && !unwanted("TERM", &["dumb"])
            }
        };
        let kinds = targets.iter().any(|target| target.identity() != targets[0].identity());
        let output = match self.output {
            Format::Json => Output::Json { objects: self.objects },
            Format::Text => {
                Output::Text(Style { colour, kinds, long: self.all_fields, zone: TimeZone::system() })
            }
        };
        let out = BufWriter::with_capacity(64 * 1024, io::stdout());
        let url = match cluster {
            Some(cluster) => cluster.url.clone(),
            None => targets.iter().map(Target::what).collect::<Vec<_>>().join(", "),
        };
        let mut follower = Follower::new(targets, Notes::new(self.quiet, colour), out, output, url);
        follower.filter = Filter { all_fields: self.all_fields, fields: self.fields.clone() };
        follower.until = self.until.map(|count| count as usize);
        follower.initial = match (self.initial, self.no_initial) {
            (true, _) => Initial::All,
            (_, true) => Initial::None,
            _ => Initial::Few,
        };
        follower
    }

    fn timed_out(&self, changes: usize) -> Result<(), Failure> {
        match (self.until, self.timeout) {
            (Some(wanted), Some(timeout)) => Err(Failure::running(format!(
                "{changes} of {wanted} changes came within {}",
                notes::rounded(timeout)
            ))),
            _ => Ok(()),
        }
    }
}

fn numbered(
    at: usize,
    entries: mpsc::Receiver<Entry<Value>>,
) -> stream::BoxStream<'static, (usize, Entry<Value>)> {
    stream::unfold(entries, move |mut entries| async move { Some(((at, entries.recv().await?), entries)) })
        .boxed()
}

/// Why the server did not say what it has, and what to do about it.
fn unreachable(cluster: &Cluster, error: &catalogue::Error) -> Failure {
    let url = &cluster.url;
    Failure::running(match error {
        catalogue::Error::Request(RequestError::Refused(status)) => match status.code.unwrap_or_default() {
            401 => format!(
                "{url} does not accept the credentials of this kubeconfig; another --context may have better ones"
            ),
            403 => format!("not allowed to ask {url} what kinds it has: {}", status.message),
            code => format!("{url} does not say what kinds it has: {code} {}", status.message),
        },
        catalogue::Error::NotKubernetes => format!("{url} does not answer as a Kubernetes API server would"),
        catalogue::Error::Request(RequestError::Unanswered(Error::Credentials(reason))) => reason.clone(),
        catalogue::Error::Request(error) => format!(
            "cannot reach {url}: {}; is it running? another --context or --kubeconfig names another server",
            reasons(error)
        ),
    })
}
