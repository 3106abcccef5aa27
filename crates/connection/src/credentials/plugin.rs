//! Credentials that another program provides: `exec` in kubeconfigs.

use std::io::IsTerminal as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::exec_credential::{self, Answer};
use super::{Proof, exec_credential::question};

/// How long before they expire credentials are replaced.
const RENEWAL_LEEWAY: Duration = Duration::from_secs(10);

/// How long a plugin may take that asks nobody anything. Less than the time that callers give an answer, so that they are told
/// whose fault it is.
const PLUGIN_TIMEOUT: Duration = Duration::from_secs(45);

/// How much a plugin may print.
const MAX_OUTPUT: u64 = 1024 * 1024;

/// A credential plugin, as a kubeconfig describes it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PluginSettings {
    pub(crate) api_version: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) interactive: Interactive,
    /// What to do if the command does not exist.
    pub(crate) install_hint: String,
    /// What it is told about the cluster.
    pub(crate) cluster: Option<Value>,
}

/// Whether a plugin may ask the person at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interactive {
    Never,
    IfAvailable,
    Always,
}

/// Runs a plugin when credentials are needed, and keeps them until they expire or a server refuses them.
///
/// At most one runs at a time. A plugin that has been started runs to its end even if nobody waits for it any more: it may be
/// waiting for a person.
pub(crate) struct Plugin(Arc<Shared>);

struct Shared {
    settings: PluginSettings,
    current: Mutex<Current>,
    /// Runs up to this one are refused.
    refused: parking_lot::Mutex<u64>,
}

#[derive(Default)]
struct Current {
    proof: Proof,
    expires: Option<SystemTime>,
}

impl Plugin {
    pub(super) fn new(settings: PluginSettings) -> Self {
        Self(Arc::new(Shared { settings, current: Mutex::default(), refused: parking_lot::Mutex::default() }))
    }

    /// The credentials of the last run, or of a new one.
    pub(super) async fn get(&self) -> Result<Proof, String> {
        if let Ok(current) = self.0.current.try_lock()
            && self.0.is_fresh(&current)
        {
            return Ok(current.proof.clone());
        }
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move { shared.renewed().await }).await.map_err(|error| error.to_string())?
    }

    /// The credentials of this run are not accepted. Those of a later one may be.
    pub(super) fn refused(&self, run: u64) {
        let mut refused = self.0.refused.lock();
        *refused = run.max(*refused);
    }
}

impl Shared {
    fn is_fresh(&self, current: &Current) -> bool {
        current.proof.run > *self.refused.lock()
            && current.expires.is_none_or(|expires| SystemTime::now() + RENEWAL_LEEWAY < expires)
    }

    async fn renewed(&self) -> Result<Proof, String> {
        let mut current = self.current.lock().await;
        if self.is_fresh(&current) {
            return Ok(current.proof.clone());
        }
        let Answer { authorization, identity, expires } = self
            .settings
            .run()
            .await
            .map_err(|reason| format!("the credential plugin {:?}: {reason}", self.settings.command))?;
        let run = current.proof.run + 1;
        *current = Current { proof: Proof { authorization, identity, run }, expires };
        Ok(current.proof.clone())
    }
}

impl PluginSettings {
    async fn run(&self) -> Result<Answer, String> {
        let interactive = match self.interactive {
            Interactive::Never => false,
            Interactive::IfAvailable => std::io::stdin().is_terminal(),
            Interactive::Always if std::io::stdin().is_terminal() => true,
            Interactive::Always => {
                return Err(
                    "it needs a terminal to ask at (interactiveMode: Always), and there is none".into()
                );
            }
        };
        let output = match interactive {
            // A person may take any time.
            true => self.output(interactive).await?,
            false => timeout(PLUGIN_TIMEOUT, self.output(interactive))
                .await
                .map_err(|_| format!("it did not end within {} s", PLUGIN_TIMEOUT.as_secs()))??,
        };
        exec_credential::read(&output, &self.api_version)
    }

    /// What it prints. Dropping the future ends it.
    async fn output(&self, interactive: bool) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&self.command);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env("KUBERNETES_EXEC_INFO", question(&self.api_version, interactive, self.cluster.as_ref()))
            .stdin(if interactive { Stdio::inherit() } else { Stdio::null() })
            .stdout(Stdio::piped())
            // What it has to say is for the person, and may be a secret.
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound if !self.install_hint.is_empty() => {
                format!("it is not installed\n{}", self.install_hint.trim_end())
            }
            std::io::ErrorKind::NotFound => "it is not installed".to_owned(),
            _ => format!("it cannot be run: {error}"),
        })?;
        let mut output = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            let read = stdout.take(MAX_OUTPUT + 1).read_to_end(&mut output).await;
            read.map_err(|error| format!("its output cannot be read: {error}"))?;
        }
        if output.len() as u64 > MAX_OUTPUT {
            return Err(format!("it printed more than {MAX_OUTPUT} bytes"));
        }
        let status = child.wait().await.map_err(|error| error.to_string())?;
        if status.success() { Ok(output) } else { Err(format!("it failed with {status}")) }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    const V1: &str = "client.authentication.k8s.io/v1";

    /// A script as a plugin. It can count its runs in the file `runs`.
    fn plugin(folder: &Path, script: &str) -> Plugin {
        let command = folder.join("plugin");
        fs::write(&command, format!("#!/bin/sh\ncd '{}'\necho run >>runs\n{script}\n", folder.display()))
            .unwrap();
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
        Plugin::new(PluginSettings {
            api_version: V1.into(),
            command: command.display().to_string(),
            args: vec!["one".into(), "two words".into()],
            env: vec![("FLAVOUR".into(), "vanilla".into())],
            interactive: Interactive::Never,
            install_hint: "install it from example.com".into(),
            cluster: None,
        })
    }

    fn prints(status: &str) -> String {
        format!("echo '{{\"kind\":\"ExecCredential\",\"apiVersion\":\"{V1}\",\"status\":{status}}}'")
    }

    fn runs(folder: &Path) -> usize {
        fs::read_to_string(folder.join("runs")).map_or(0, |runs| runs.lines().count())
    }

    async fn token(plugin: &Plugin) -> String {
        plugin.get().await.unwrap().authorization.unwrap().to_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_plugin_gets_arguments_and_environment_and_runs_once_for_many() {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "echo \"$KUBERNETES_EXEC_INFO\" >info; echo \"$1-$2-$FLAVOUR\" >said; {}",
            prints(r#"{"token":"t"}"#)
        );
        let plugin = plugin(folder.path(), &script);
        let (one, other) = tokio::join!(token(&plugin), token(&plugin));
        assert_eq!((one.as_str(), other.as_str()), ("Bearer t", "Bearer t"));
        assert_eq!(token(&plugin).await, "Bearer t");
        assert_eq!(runs(folder.path()), 1);
        assert_eq!(fs::read_to_string(folder.path().join("said")).unwrap(), "one-two words-vanilla\n");
        let info: Value = serde_json::from_slice(&fs::read(folder.path().join("info")).unwrap()).unwrap();
        assert_eq!(info["spec"], serde_json::json!({"interactive": false}));
    }

    #[tokio::test]
    async fn credentials_that_expire_soon_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let expired = prints(r#"{"token":"old","expirationTimestamp":"2020-01-01T00:00:00Z"}"#);
        let lasting = prints(r#"{"token":"new","expirationTimestamp":"2999-01-01T00:00:00Z"}"#);
        let script = format!("if [ -e been ]; then {lasting}; else touch been; {expired}; fi");
        let plugin = plugin(folder.path(), &script);
        assert_eq!(token(&plugin).await, "Bearer old");
        assert_eq!(token(&plugin).await, "Bearer new");
        assert_eq!(token(&plugin).await, "Bearer new");
        assert_eq!(runs(folder.path()), 2);
    }

    #[tokio::test]
    async fn credentials_that_were_refused_are_replaced_once() {
        let folder = tempfile::tempdir().unwrap();
        let plugin = plugin(folder.path(), &prints(r#"{"token":"'$(wc -l <runs)'"}"#));
        let first = plugin.get().await.unwrap();
        plugin.refused(first.run);
        plugin.refused(first.run);
        let second = plugin.get().await.unwrap();
        assert_ne!(first.authorization, second.authorization);
        plugin.refused(first.run);
        assert_eq!(plugin.get().await.unwrap().authorization, second.authorization);
        assert_eq!(runs(folder.path()), 2);
    }

    #[tokio::test]
    async fn a_plugin_that_fails_or_talks_nonsense_is_named_and_its_output_is_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        for (script, said) in [
            ("echo secret; exit 3", "exit status: 3"),
            ("echo secret", "ExecCredential"),
            ("exec head -c 3000000 /dev/zero", "more than"),
            ("kill -9 $$", "signal"),
        ] {
            let error = plugin(folder.path(), script).get().await.err().unwrap();
            assert!(error.contains(said) && error.contains("plugin") && !error.contains("secret"), "{error}");
        }
        let mut missing = plugin(folder.path(), "");
        Arc::get_mut(&mut missing.0).unwrap().settings.command = "no-such-plugin-anywhere".into();
        let error = missing.get().await.err().unwrap();
        assert!(error.contains("not installed") && error.contains("example.com"), "{error}");
    }

    #[tokio::test]
    async fn a_plugin_that_nobody_waits_for_any_more_is_not_run_twice() {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("while [ ! -e go ]; do sleep 0.01; done; {}", prints(r#"{"token":"t"}"#));
        let plugin = plugin(folder.path(), &script);
        assert!(timeout(Duration::from_millis(300), plugin.get()).await.is_err());
        fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(token(&plugin).await, "Bearer t");
        assert_eq!(runs(folder.path()), 1);
    }

    #[tokio::test]
    async fn a_plugin_that_never_ends_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let plugin = plugin(folder.path(), "echo $$ >pid; exec sleep 1000");
        let waiting = tokio::spawn(async move { plugin.get().await.err().unwrap() });
        let pid = folder.path().join("pid");
        while fs::read_to_string(&pid).map_or(true, |pid| pid.is_empty()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::pause();
        tokio::time::advance(PLUGIN_TIMEOUT).await;
        tokio::time::resume();
        let error = waiting.await.unwrap();
        assert!(error.contains("did not end within 45 s"), "{error}");
        let pid = fs::read_to_string(pid).unwrap();
        let there = || Path::new(&format!("/proc/{}/stat", pid.trim())).exists();
        for _ in 0..400 {
            if !there() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("it still runs");
    }

    #[tokio::test]
    async fn a_plugin_that_has_to_ask_is_not_run_where_nobody_can_answer() {
        let folder = tempfile::tempdir().unwrap();
        let mut plugin = plugin(folder.path(), "");
        Arc::get_mut(&mut plugin.0).unwrap().settings.interactive = Interactive::Always;
        if !std::io::stdin().is_terminal() {
            let error = plugin.get().await.err().unwrap();
            assert!(error.contains("terminal"), "{error}");
            assert_eq!(runs(folder.path()), 0);
        }
    }
}
