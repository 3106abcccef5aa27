//! The action `command`: runs a program.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command as Process};
use tokio::task::JoinHandle;

use super::scratch::{Scratch, ScratchFile};
use super::{Failure, Run, aborted, output};
use crate::change::Change;
use crate::file::{CommandSpec, Program, Stdin};
use crate::leftovers::Leftovers;
use crate::template::{TextTemplate, Unfilled};

/// A program that has to end is asked to, and killed after this time.
const GRACE: Duration = Duration::from_secs(3);
/// What a program leaves running may hold its output open; it is read for so long after the program has ended.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// Runs a program for each change, in a process group of its own. Success is exit code 0.
pub(crate) struct Command {
    spec: CommandSpec,
    scratch: Arc<Scratch>,
    /// Commands that another process may have left running.
    leftovers: Option<Arc<Leftovers>>,
}

impl Command {
    pub(super) fn new(spec: CommandSpec, scratch: Arc<Scratch>, leftovers: Option<Arc<Leftovers>>) -> Self {
        Self { spec, scratch, leftovers }
    }

    pub(super) async fn run(&self, run: &Run<'_>) -> Result<(), Failure> {
        let change = run.change;
        let mut process =
            self.process(change).map_err(|unfilled| Failure::never(format!("command: {unfilled}")))?;
        let state =
            |state: &Option<Arc<_>>| state.as_deref().map(|value| self.scratch.file(value)).transpose();
        let write = |error| Failure::usual(format!("cannot write a file for the command: {error}"));
        let (old, new) = (state(&change.old).map_err(write)?, state(&change.new).map_err(write)?);
        process.stdin(match self.spec.stdin {
            Stdin::Nothing => Stdio::null(),
            _ => self.scratch.input(&self.input(change)).map_err(write)?.into(),
        });
        let path = |file: &Option<ScratchFile>| {
            file.as_ref().map_or_else(PathBuf::new, |file| file.path().to_owned())
        };
        process
            .env("WATCHKEEPER_EVENT", change.event.word())
            .env("WATCHKEEPER_SOURCE", &*change.source)
            .env("WATCHKEEPER_REACTION", run.reaction)
            .env("WATCHKEEPER_KEY", change.key.to_string())
            .env("WATCHKEEPER_NAMESPACE", change.key.namespace().unwrap_or_default())
            .env("WATCHKEEPER_NAME", change.key.name())
            .env("WATCHKEEPER_ATTEMPT", (run.attempt + 1).to_string())
            .env("WATCHKEEPER_OLD_FILE", path(&old))
            .env("WATCHKEEPER_NEW_FILE", path(&new));
        if let Some(leftovers) = &self.leftovers {
            tokio::select! {
                () = leftovers.over() => {}
                () = aborted(run) => return Err(Failure::usual("aborted")),
            }
        }
        let mut child = process.spawn().map_err(|error| {
            Failure::usual(format!("cannot run {} in {}: {error}", self.name(), self.spec.dir.display()))
        })?;
        let mut group = Group::of(&child);
        let mut streams = Streams::start(&mut child, run);
        let (status, why) = tokio::select! {
            status = child.wait() => (status, None),
            () = tokio::time::sleep(run.timeout) => {
                (group.end(&mut child).await, Some(format!("did not end within {:?} and was killed", run.timeout)))
            }
            () = aborted(run) => (group.end(&mut child).await, Some("aborted".to_owned())),
        };
        group.ended();
        streams.end().await;
        match (status, why) {
            (_, Some(why)) => Err(Failure::usual(why)),
            (Ok(status), None) if status.success() => Ok(()),
            (Ok(status), None) => Err(Failure::usual(ending(status))),
            (Err(error), None) => Err(Failure::usual(format!("cannot be waited for: {error}"))),
        }
    }

    pub(super) fn would(&self, change: &Change) -> Result<String, Failure> {
        self.process(change).map_err(|unfilled| Failure::never(format!("command: {unfilled}")))?;
        Ok(format!("run {}", self.name()))
    }

    fn process(&self, change: &Change) -> Result<Process, Unfilled> {
        let mut process = match &self.spec.program {
            Program::Shell(line) => {
                let mut process = Process::new("/bin/sh");
                process.args(["-c", line]);
                process
            }
            Program::Arguments(arguments) => {
                let filled = arguments.iter().map(|argument| argument.fill(change));
                let filled: Vec<String> = filled.collect::<Result<_, _>>()?;
                let (program, arguments) =
                    filled.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
                let mut process = Process::new(self.program(program));
                process.args(arguments);
                process
            }
        };
        for (name, value) in &self.spec.env {
            process.env(name, value.fill(change)?);
        }
        process.current_dir(&self.spec.dir).process_group(0);
        process.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(process)
    }

    /// A name is looked for in `$PATH`; a path is one from the directory that the command runs in.
    fn program(&self, name: &str) -> PathBuf {
        if name.contains('/') { self.spec.dir.join(name) } else { Path::new(name).to_owned() }
    }

    fn input(&self, change: &Change) -> Vec<u8> {
        match self.spec.stdin {
            Stdin::Object => change.newest().map(|state| state.to_string().into_bytes()).unwrap_or_default(),
            Stdin::Change => change.to_json().to_string().into_bytes(),
            Stdin::Nothing => Vec::new(),
        }
    }

    /// The program, without what comes from objects.
    fn name(&self) -> String {
        match &self.spec.program {
            Program::Shell(_) => "the shell command".to_owned(),
            Program::Arguments(arguments) => {
                arguments.first().and_then(TextTemplate::literal).unwrap_or_default()
            }
        }
    }
}

fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended without an exit code".to_owned(),
    }
}

/// The processes of a command. If this is dropped before they have ended, they are killed.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }

    /// Asks all processes of the group to end, waits a little, and kills those that are left.
    async fn end(&mut self, child: &mut Child) -> std::io::Result<ExitStatus> {
        self.signal(Signal::TERM);
        let ended = tokio::time::timeout(GRACE, child.wait()).await;
        self.signal(Signal::KILL);
        match ended {
            Ok(status) => status,
            Err(_) => child.wait().await,
        }
    }

    fn ended(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // There may be none left.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// What comes out of a command.
struct Streams {
    outputs: Vec<JoinHandle<()>>,
}

impl Streams {
    fn start(child: &mut Child, run: &Run<'_>) -> Self {
        let prefix = format!("{}: {}", run.reaction, run.change.key);
        let mut outputs = Vec::new();
        outputs.extend(child.stdout.take().map(|from| tokio::spawn(output::log(from, prefix.clone()))));
        outputs.extend(child.stderr.take().map(|from| tokio::spawn(output::log(from, prefix))));
        Self { outputs }
    }

    async fn end(&mut self) {
        let outputs = std::mem::take(&mut self.outputs);
        let deadline = tokio::time::Instant::now() + OUTPUT_GRACE;
        for mut output in outputs {
            if tokio::time::timeout_at(deadline, &mut output).await.is_err() {
                output.abort();
            }
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.outputs.iter().for_each(JoinHandle::abort);
    }
}
