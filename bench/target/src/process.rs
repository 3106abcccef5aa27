//! Processes as Linux tells of them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use crate::Result;

/// How long a process may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// Clock ticks a second, as Linux tells times of processes.
const TICKS: f64 = 100.0;

/// A process that somebody started, known by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

/// Which memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// What is resident now.
    Now,
    /// What was resident at the most since the process began, or since [`Process::forget_peak`].
    Most,
}

impl Process {
    /// The one with this id.
    pub fn of(id: u32) -> Self {
        Self(id)
    }

    /// Seconds of CPU time that it has used in user and system mode, to a hundredth of a second.
    ///
    /// # Errors
    ///
    /// If it is not there.
    pub fn cpu(self) -> Result<f64> {
        Ok(busy(&self.read("stat")?).ok_or("the status of a process cannot be read")?)
    }

    /// Bytes of memory.
    ///
    /// # Errors
    ///
    /// If it is not there.
    pub fn memory(self, which: Memory) -> Result<f64> {
        let field = match which {
            Memory::Now => "VmRSS",
            Memory::Most => "VmHWM",
        };
        let status = self.read("status")?;
        Ok(kilobytes(&status, field).ok_or("no such field in the status of a process")? * 1024.0)
    }

    /// From now on, [`Memory::Most`] is what is resident now, or more.
    ///
    /// # Errors
    ///
    /// If it is not there, or belongs to somebody else.
    pub fn forget_peak(self) -> Result<()> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.0), "5")?)
    }

    /// How long it has been running, to a hundredth of a second; nothing if it is not.
    pub fn age(self) -> Option<Duration> {
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_secs_f64((uptime - started(&self.read("stat").ok()?)?).max(0.0)))
    }

    /// Asks it to end.
    pub fn ask_to_end(self) {
        self.send(Signal::TERM);
    }

    /// Ends it at once. It may be there a moment longer.
    pub fn kill(self) {
        self.send(Signal::KILL);
    }

    /// Asks it to end, waits, and kills it if it does not.
    pub fn end(self) {
        let begin = Instant::now();
        self.ask_to_end();
        while self.age().is_some() {
            if begin.elapsed() > GRACE {
                self.kill();
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn send(self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.0).ok().and_then(Pid::from_raw) {
            // Whoever is gone need not be asked.
            let _ = kill_process(pid, signal);
        }
    }

    fn read(self, file: &str) -> Result<String> {
        let Self(id) = self;
        fs::read_to_string(format!("/proc/{id}/{file}"))
            .map_err(|error| format!("process {id}: {error}").into())
    }
}

/// Lets this process and those that it starts open as many files as it may at the most: a thousand watchers are a thousand
/// connections at both ends. Gives how many that is, or nothing if there is no limit.
pub fn allow_open_files() -> Option<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // It can only be refused if the limit is lowered meanwhile, and then the connection that is too many says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    maximum
}

/// How many files a program that is started may have open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenFiles {
    /// As many as this process.
    #[default]
    AsHere,
    /// A soft limit, which the program can raise to the hard one.
    Soft(u32),
    /// A limit that the program cannot raise.
    Hard(u32),
}

impl OpenFiles {
    /// What starts a program so. The id of its process is the one of the command.
    pub fn command(self, program: &Path) -> Command {
        let limit = match self {
            Self::AsHere => return Command::new(program),
            Self::Soft(files) => format!("-S -n {files}"),
            Self::Hard(files) => format!("-n {files}"),
        };
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!(r#"ulimit {limit} && exec "$0" "$@""#)).arg(program);
        command
    }
}

/// When a process started, in seconds since the machine did; nothing if it has ended.
fn started(stat: &str) -> Option<f64> {
    let running = !matches!(fields(stat)?.next()?, "Z" | "X");
    let ticks: f64 = fields(stat)?.nth(19)?.parse().ok()?;
    running.then_some(ticks / TICKS)
}

/// Seconds that a process computed, in user and in system mode.
fn busy(stat: &str) -> Option<f64> {
    let mut fields = fields(stat)?.skip(11).map(|field| field.parse::<f64>().ok());
    Some((fields.next()?? + fields.next()??) / TICKS)
}

/// What follows the name: that may hold anything, but what follows its last bracket does not.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}

fn kilobytes(status: &str, field: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_the_name_of_its_field() {
        let status = "Name:\tx\nVmHWM:\t  20 kB\nVmRSS:\t    12 kB\n";
        assert_eq!(kilobytes(status, "VmRSS"), Some(12.0));
        assert_eq!(kilobytes(status, "Vm"), None);
    }

    #[test]
    fn the_start_of_a_process_is_found_whatever_its_name_and_not_if_it_has_ended() {
        let stat = |state| format!("7 (a) b) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4200 0");
        assert_eq!(started(&stat("S")), Some(42.0));
        assert_eq!(started(&stat("Z")), None);
    }

    #[test]
    fn the_cpu_time_of_a_process_is_that_of_user_and_system_mode() {
        assert_eq!(busy("7 (a) S 1 2 3 4 5 6 7 8 9 10 250 150 13"), Some(4.0));
        assert_eq!(busy("7 (a) S 1 2 3 4 5 6 7 8 9 10 250"), None);
    }

    #[test]
    fn a_program_can_be_started_with_fewer_files() {
        let shown = |files: OpenFiles, which: &str| {
            let output =
                files.command(Path::new("/bin/sh")).args(["-c", &format!("ulimit {which} -n")]).output();
            String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
        };
        let hard = shown(OpenFiles::AsHere, "-H");
        assert_eq!(
            (shown(OpenFiles::Soft(77), "-S").as_str(), shown(OpenFiles::Soft(77), "-H")),
            ("77", hard)
        );
        assert_eq!(shown(OpenFiles::Hard(77), "-H"), "77");
    }

    #[test]
    fn a_peak_can_be_forgotten() {
        let own = Process::of(std::process::id());
        drop(std::hint::black_box(vec![1_u8; 64 << 20]));
        let before = own.memory(Memory::Most).unwrap();
        own.forget_peak().unwrap();
        assert!(own.memory(Memory::Most).unwrap() < before - f64::from(32 << 20));
        assert!(own.memory(Memory::Now).unwrap() <= own.memory(Memory::Most).unwrap() + f64::from(1 << 20));
    }

    #[test]
    fn a_process_that_ended_has_no_age_and_no_cpu_time() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id());
        assert!(process.age().is_some());
        process.end();
        assert_eq!(process.age(), None);
        child.wait().unwrap();
        assert!(process.cpu().unwrap_err().to_string().starts_with("process "));
    }
}
