//! What the numbers were measured on and with.

use std::fmt;
use std::process::Command;

/// The machine, the versions and the commit of a run.
#[derive(Debug)]
pub struct Machine {
    processor: String,
    cores: usize,
    memory: f64,
    system: String,
    rust: String,
    go: Option<String>,
    commit: String,
    date: String,
}

impl Machine {
    /// This one, now.
    pub fn here() -> Self {
        let read = |file| std::fs::read_to_string(file).unwrap_or_default();
        let field = |text: &str, name| {
            let line = text.lines().find_map(|line: &str| line.strip_prefix(name)?.split_once(':'))?;
            Some(line.1.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let memory = memory.and_then(|memory| memory.strip_suffix(" kB")?.parse::<f64>().ok());
        let changed = output(
            "git",
            &["status", "--porcelain", "--untracked-files=no", "--", ":!bench/*.md", ":!bench/charts"],
        );
        let commit = output("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".into());
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name")
                .unwrap_or_else(|| "unknown processor".into()),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory: memory.unwrap_or_default() * 1024.0,
            system: output("uname", &["-sr"]).unwrap_or_default(),
            rust: output("rustc", &["--version"]).unwrap_or_default(),
            go: output("go", &["version"]),
            // Nobody should look for these numbers in a commit that does not have the code.
            commit: if changed.is_some() { format!("{commit} with changes") } else { commit },
            date: output("date", &["-u", "+%F"]).unwrap_or_default(),
        }
    }
}

/// What a command prints, if anything.
fn output(command: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(command).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores, memory, system, rust, go, commit, date } = self;
        let gigabytes = memory / f64::from(1 << 30);
        write!(f, "{processor}, {cores} cores, {gigabytes:.0} GiB, {system}, {rust}")?;
        if let Some(go) = go {
            write!(f, ", {go}")?;
        }
        write!(f, ", commit {commit}, {date}")
    }
}
