//! The requests in `differential/` get the answers that the real kube-apiserver gave. Each file is a test.
//!
//! The answers are in `differential/recorded/`. `WATCHKEEPER_CONFORMANCE_RECORD=1`, together with the kubeconfig of a
//! real server, records them anew. `differential/known.txt` lists the answers that are known to differ, each with its
//! reason; one that agrees after all must be taken off the list.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use k8s_openapi::api::core::v1::Namespace;
use kube_client::{Api, Client};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;
use watchkeeper_conformance::{Error, Exchanges, Recording, Server, choice, differences, files};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let run = Arc::new(Run::new());
    let mut trials: Vec<Trial> =
        files("differential", "http").into_iter().map(|(name, path)| run.trial(name, &path)).collect();
    trials.push(Trial::test("known_differences_are_those_of_requests_that_exist", known_exist));
    // All at once: they wait for the server, and some of them for time to pass.
    arguments.test_threads.get_or_insert(trials.len());
    let conclusion = libtest_mimic::run(&arguments, trials);
    run.report();
    conclusion.exit_code()
}

/// What files need that are about the admission plug-in ServiceAccount.
const ACCOUNTS: &str = "service-account-plugin";

/// What files need that are about the admission plug-in OwnerReferencesPermissionEnforcement, which is off by default.
const OWNERS: &str = "owner-references-plugin";

/// What the tests share: a server, which starts with the first of them, and what they found.
struct Run {
    runtime: Runtime,
    asked: OnceLock<Result<Asked, String>>,
    /// The same with the admission plug-in ServiceAccount, for the files that need it.
    asked_with_accounts: OnceLock<Result<Asked, String>>,
    /// The same with the admission plug-in OwnerReferencesPermissionEnforcement.
    asked_with_owners: OnceLock<Result<Asked, String>>,
    /// Held by those who must be alone, and shared by the others.
    alone: RwLock<()>,
    tolerated: BTreeSet<String>,
    found: Mutex<BTreeMap<String, Comparison>>,
}

/// The server, with a client that it knows and one that it does not.
struct Asked {
    _server: Server,
    known: Client,
    anonymous: Client,
}

#[derive(Default)]
struct Comparison {
    requests: usize,
    unexpected: Vec<String>,
    report: String,
}

impl Run {
    fn new() -> Self {
        Self {
            runtime: Runtime::new().unwrap(),
            asked: OnceLock::new(),
            asked_with_accounts: OnceLock::new(),
            asked_with_owners: OnceLock::new(),
            alone: RwLock::new(()),
            tolerated: tolerated(),
            found: Mutex::default(),
        }
    }

    fn trial(self: &Arc<Self>, name: String, path: &Path) -> Trial {
        let exchanges = Exchanges::parse(&fs::read_to_string(path).unwrap());
        let lacking = exchanges.needs.iter().find(|need| !Server::has(need)).cloned();
        let run = Arc::clone(self);
        let trial = Trial::test(name.clone(), move || run.compare(name, &exchanges));
        match lacking {
            Some(need) => trial.with_kind(format!("needs {need}")).with_ignored_flag(true),
            None => trial,
        }
    }

    fn compare(&self, name: String, exchanges: &Exchanges) -> Result<(), Failed> {
        let got = self.record(&name, exchanges)?;
        let file = folder().join("recorded").join(format!("{name}.json"));
        if choice("RECORD").is_some() {
            fs::write(&file, serde_json::to_string_pretty(&got.to_json()).unwrap() + "\n")?;
        }
        let recorded = Recording::from_json(&serde_json::from_slice(&fs::read(&file)?)?);
        let comparison = Comparison::of(&name, &recorded, &got, &self.tolerated);
        let (unexpected, report) = (comparison.unexpected.join("\n"), comparison.report.clone());
        self.found.lock().unwrap().insert(name, comparison);
        if unexpected.is_empty() { Ok(()) } else { Err(format!("{unexpected}\n\n{report}").into()) }
    }

    fn record(&self, name: &str, exchanges: &Exchanges) -> Result<Recording, Failed> {
        let _alone = exchanges.alone.then(|| self.alone.write());
        let _together = (!exchanges.alone).then(|| self.alone.read());
        let needs = |plugin: &str| exchanges.needs.iter().any(|need| need == plugin);
        let asked = if needs(ACCOUNTS) {
            self.asked_with_accounts.get_or_init(|| self.start_with_accounts()).as_ref()?
        } else if needs(OWNERS) {
            self.asked_with_owners.get_or_init(|| self.start_with_owners()).as_ref()?
        } else {
            self.asked.get_or_init(|| self.start()).as_ref()?
        };
        self.runtime.block_on(async {
            let namespace = format!("{name}-{:06x}", std::process::id());
            let object = serde_json::from_value(serde_json::json!({"metadata": {"name": namespace}}))?;
            Api::<Namespace>::all(asked.known.clone()).create(&Default::default(), &object).await?;
            Ok(Recording::of(exchanges, &namespace, &asked.known, &asked.anonymous).await)
        })
    }

    fn start(&self) -> Result<Asked, String> {
        // Beside the real one nobody adds up quotas or lets claims and volumes go, either.
        let controllers = "*,-resourcequota-controller,-pvc-protection,-pv-protection,\
            -volumeattributesclass-protection-controller";
        let arguments = ["--controllers", controllers].map(OsStr::new);
        self.ask(Server::start_with(&scratch(), &arguments))
    }

    fn start_with_accounts(&self) -> Result<Asked, String> {
        let arguments = ["--controllers", "*,-serviceaccount-controller"].map(OsStr::new);
        self.ask(Server::start_bare(&scratch().join("accounts"), &arguments))
    }

    fn start_with_owners(&self) -> Result<Asked, String> {
        let arguments =
            ["--enable-admission-plugins", "OwnerReferencesPermissionEnforcement"].map(OsStr::new);
        self.ask(Server::start_with(&scratch().join("owners"), &arguments))
    }

    fn ask(&self, server: Result<Server, Error>) -> Result<Asked, String> {
        let server = server.map_err(|error| error.to_string())?;
        let clients = self.runtime.block_on(server.clients()).map_err(|error| error.to_string())?;
        Ok(Asked { _server: server, known: clients.0, anonymous: clients.1 })
    }

    /// Writes down all differences, those that are known included, and says how many there are.
    fn report(&self) {
        let found = self.found.lock().unwrap();
        if found.is_empty() {
            return;
        }
        let report: String = found.values().map(|comparison| comparison.report.as_str()).collect();
        fs::create_dir_all(scratch()).unwrap();
        fs::write(scratch().join("differences.md"), report).unwrap();
        let requests: usize = found.values().map(|comparison| comparison.requests).sum();
        let unexpected: usize = found.values().map(|comparison| comparison.unexpected.len()).sum();
        println!("{requests} requests, {unexpected} answers not as expected");
    }
}

impl Comparison {
    fn of(name: &str, recorded: &Recording, got: &Recording, tolerated: &BTreeSet<String>) -> Self {
        let titles = |recording: &Recording| -> Vec<String> {
            recording.answers.iter().map(|answer| answer.title.clone()).collect()
        };
        assert_eq!(titles(recorded), titles(got), "recorded with other requests");
        assert!(!got.answers.is_empty(), "there are no requests in the file");
        let mut comparison = Self { requests: got.answers.len(), ..Self::default() };
        for (expected, got) in recorded.answers.iter().zip(&got.answers) {
            let title = format!("{name}: {}", got.title);
            let found = differences(&expected.answer, &got.answer);
            match (found.is_empty(), tolerated.contains(&title)) {
                (true, false) => continue,
                (true, true) => {
                    comparison.unexpected.push(format!("{title} (agrees, take it off the list)"));
                }
                (false, true) => {}
                (false, false) => comparison.unexpected.push(title.clone()),
            }
            let lines: String = found.iter().map(|line| format!("- {line}\n")).collect();
            comparison.report.push_str(&format!("## {title}\n`{}`\n{lines}\n", got.request));
        }
        comparison
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("differential")
}

fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential")
}

/// Fails for lines of `known.txt` that are about no request.
fn known_exist() -> Result<(), Failed> {
    let mut unknown = tolerated();
    for (name, path) in files("differential", "http") {
        for exchange in Exchanges::parse(&fs::read_to_string(path)?).exchanges {
            unknown.remove(&format!("{name}: {}", exchange.title));
        }
    }
    if unknown.is_empty() { Ok(()) } else { Err(format!("no requests: {unknown:#?}").into()) }
}

/// `file: title` of the answers that are known to differ.
fn tolerated() -> BTreeSet<String> {
    let text = fs::read_to_string(folder().join("known.txt")).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(" | ")).map(|(title, _)| title.trim().to_owned()).collect()
}
