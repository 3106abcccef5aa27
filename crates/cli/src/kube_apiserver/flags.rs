//! The flags of kube-apiserver: what each of them is worth here.

use std::collections::BTreeMap;
use std::fmt::Write;

use Effect::{Ignored, Noted, Refused, Used};
use Form::{Switch, Text};

/// The values that were given, in order, by the name of the flag.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Values(BTreeMap<&'static str, Vec<String>>);

impl Values {
    /// The last value of a flag, unless it is empty.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All words of a flag that takes lists.
    pub(super) fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.0.get(name).into_iter().flatten();
        values.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
    }
}

/// What a command line came to.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// Show how it is used.
    Help,
    /// Show the version.
    Version,
    /// Serve; and what should be said about flags that have no effect.
    Serve(Values, Vec<String>),
}

/// Reads a command line as pflag does: `--name=value`, `--name value`, and `--name` for a switch.
pub(super) fn parse(arguments: &[String]) -> Result<Line, String> {
    let mut values = Values::default();
    let mut notes = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(Line::Help),
            "--version" | "--version=true" => return Ok(Line::Version),
            _ => {}
        }
        let unknown = || format!("unknown flag: {argument}");
        // Only -v has a short form.
        let short = || argument.strip_prefix('-').filter(|word| word.starts_with('v'));
        let word = argument.strip_prefix("--").or_else(short).ok_or_else(unknown)?;
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        let flag = FLAGS.iter().find(|flag| flag.name == name).ok_or_else(unknown)?;
        let value = match (value, flag.form) {
            (Some(value), _) => value,
            (None, Switch) => "true".to_owned(),
            (None, Text) => {
                rest.next().cloned().ok_or_else(|| format!("flag needs an argument: --{name}"))?
            }
        };
        match flag.effect {
            Ignored => continue,
            Noted(why) if means_something(&value) => notes.push(format!("--{name} has no effect: {why}")),
            Refused(why) if means_something(&value) => return Err(format!("--{name}={value}: {why}")),
            Noted(_) | Refused(_) | Used(_) => {}
        }
        values.0.entry(flag.name).or_default().push(value);
    }
    Ok(Line::Serve(values, notes))
}

/// A switch that is off and an empty text ask for nothing.
fn means_something(value: &str) -> bool {
    !matches!(value, "" | "false")
}

/// All flags, one a line.
pub(super) fn help() -> String {
    let mut help = String::new();
    for flag in FLAGS {
        let what = match flag.effect {
            Used(what) => what.to_owned(),
            Ignored => "accepted, has no effect".to_owned(),
            Noted(why) => format!("accepted with a warning, has no effect: {why}"),
            Refused(why) => format!("refused: {why}"),
        };
        let _ = writeln!(help, "      --{:<38} {what}", flag.name); // writing to a string does not fail
    }
    help
}

struct Flag {
    name: &'static str,
    form: Form,
    effect: Effect,
}

#[derive(Clone, Copy)]
enum Form {
    Text,
    Switch,
}

#[derive(Clone, Copy)]
enum Effect {
    /// This is what it does.
    Used(&'static str),
    /// Nothing that a client could see depends on it.
    Ignored,
    /// A client could see it, but hardly anybody looks: said on stderr.
    Noted(&'static str),
    /// A test that sets it would not test what it means to.
    Refused(&'static str),
}

const fn flag(name: &'static str, form: Form, effect: Effect) -> Flag {
    Flag { name, form, effect }
}

const AUDIT: Effect = Noted("there is no audit log");
const PROXY: Effect = Noted(
    "no front proxy is trusted, and extension API servers are shown a certificate that this server makes",
);
const WEBHOOK: Effect = Refused("webhook authentication and authorization are not supported");
const OIDC: Effect = Refused("this server does not know OpenID Connect");
const SECONDS: Effect = Refused("tolerations are always for 300 seconds");

/// Every flag of kube-apiserver 1.36.
const FLAGS: &[Flag] = &[
    flag(
        "admission-control",
        Text,
        Refused("use --enable-admission-plugins and --disable-admission-plugins"),
    ),
    flag(
        "admission-control-config-file",
        Text,
        Used("the configuration of the admission plugin PodSecurity"),
    ),
    flag("advertise-address", Text, Used("the address in the endpoints of the Service default/kubernetes")),
    flag("aggregator-reject-forwarding-redirect", Switch, Ignored),
    flag("allow-metric-labels", Text, Ignored),
    flag("allow-metric-labels-manifest", Text, Ignored),
    flag("allow-privileged", Switch, Ignored),
    flag("anonymous-auth", Switch, Used("whether requests without credentials are answered")),
    flag("api-audiences", Text, Noted("tokens of service accounts are for the issuer")),
    flag("audit-log-batch-buffer-size", Text, Ignored),
    flag("audit-log-batch-max-size", Text, Ignored),
    flag("audit-log-batch-max-wait", Text, Ignored),
    flag("audit-log-batch-throttle-burst", Text, Ignored),
    flag("audit-log-batch-throttle-enable", Switch, Ignored),
    flag("audit-log-batch-throttle-qps", Text, Ignored),
    flag("audit-log-compress", Switch, Ignored),
    flag("audit-log-format", Text, Ignored),
    flag("audit-log-maxage", Text, Ignored),
    flag("audit-log-maxbackup", Text, Ignored),
    flag("audit-log-maxsize", Text, Ignored),
    flag("audit-log-mode", Text, Ignored),
    flag("audit-log-path", Text, AUDIT),
    flag("audit-log-truncate-enabled", Switch, Ignored),
    flag("audit-log-truncate-max-batch-size", Text, Ignored),
    flag("audit-log-truncate-max-event-size", Text, Ignored),
    flag("audit-log-version", Text, Ignored),
    flag("audit-policy-file", Text, AUDIT),
    flag("audit-webhook-batch-buffer-size", Text, Ignored),
    flag("audit-webhook-batch-max-size", Text, Ignored),
    flag("audit-webhook-batch-max-wait", Text, Ignored),
    flag("audit-webhook-batch-throttle-burst", Text, Ignored),
    flag("audit-webhook-batch-throttle-enable", Switch, Ignored),
    flag("audit-webhook-batch-throttle-qps", Text, Ignored),
    flag("audit-webhook-config-file", Text, AUDIT),
    flag("audit-webhook-initial-backoff", Text, Ignored),
    flag("audit-webhook-mode", Text, Ignored),
    flag("audit-webhook-truncate-enabled", Switch, Ignored),
    flag("audit-webhook-truncate-max-batch-size", Text, Ignored),
    flag("audit-webhook-truncate-max-event-size", Text, Ignored),
    flag("audit-webhook-version", Text, Ignored),
    flag("authentication-config", Text, OIDC),
    flag("authentication-token-webhook-cache-ttl", Text, Ignored),
    flag("authentication-token-webhook-config-file", Text, WEBHOOK),
    flag("authentication-token-webhook-version", Text, Ignored),
    flag("authorization-config", Text, WEBHOOK),
    flag("authorization-mode", Text, Used("who may do what: AlwaysAllow, or RBAC, with or without Node")),
    flag("authorization-policy-file", Text, Refused("this server does not know ABAC")),
    flag("authorization-webhook-cache-authorized-ttl", Text, Ignored),
    flag("authorization-webhook-cache-unauthorized-ttl", Text, Ignored),
    flag("authorization-webhook-config-file", Text, WEBHOOK),
    flag("authorization-webhook-version", Text, Ignored),
    flag("bind-address", Text, Used("the address to listen on; all of them by default")),
    flag("cert-dir", Text, Used("where apiserver.crt and apiserver.key are, or are made")),
    flag("client-ca-file", Text, Used("the authorities that clients have their certificates from")),
    flag("contention-profiling", Switch, Ignored),
    flag("coordinated-leadership-lease-duration", Text, Ignored),
    flag("coordinated-leadership-renew-deadline", Text, Ignored),
    flag("coordinated-leadership-retry-period", Text, Ignored),
    flag("cors-allowed-origins", Text, Noted("browsers of other origins are not welcomed")),
    flag("debug-socket-path", Text, Ignored),
    flag("default-not-ready-toleration-seconds", Text, SECONDS),
    flag("default-unreachable-toleration-seconds", Text, SECONDS),
    flag("delete-collection-workers", Text, Ignored),
    flag("disable-admission-plugins", Text, Used("admission plugins that should not act")),
    flag("disable-http2-serving", Switch, Noted("HTTP/2 is offered")),
    flag("disabled-metrics", Text, Ignored),
    flag("egress-selector-config-file", Text, Ignored),
    flag("emulated-version", Text, Noted("there is one version only")),
    flag("emulation-forward-compatible", Switch, Ignored),
    flag("enable-admission-plugins", Text, Used("admission plugins that should act")),
    flag(
        "enable-aggregator-routing",
        Switch,
        Noted("extension API servers are always asked at the endpoints of their Services"),
    ),
    flag("enable-bootstrap-token-auth", Switch, Noted("there are no bootstrap tokens")),
    flag(
        "enable-garbage-collector",
        Switch,
        Used("whether objects go away with their owners; true by default"),
    ),
    flag("enable-logs-handler", Switch, Ignored),
    flag("enable-priority-and-fairness", Switch, Ignored),
    flag("encryption-provider-config", Text, Noted("objects are stored as they are")),
    flag("encryption-provider-config-automatic-reload", Switch, Ignored),
    flag("endpoint-reconciler-type", Text, Ignored),
    flag("etcd-cafile", Text, Ignored),
    flag("etcd-certfile", Text, Ignored),
    flag("etcd-compaction-interval", Text, Ignored),
    flag("etcd-count-metric-poll-period", Text, Ignored),
    flag("etcd-db-metric-poll-interval", Text, Ignored),
    flag("etcd-healthcheck-timeout", Text, Ignored),
    flag("etcd-keyfile", Text, Ignored),
    flag("etcd-prefix", Text, Ignored),
    flag("etcd-readycheck-timeout", Text, Ignored),
    flag("etcd-servers", Text, Used("the etcd beside this program, which says where objects are kept")),
    flag("etcd-servers-overrides", Text, Ignored),
    flag("event-ttl", Text, Used("how long events are kept; 1h by default")),
    flag("external-hostname", Text, Used("one more name of this server, for a certificate that is made")),
    flag("feature-gates", Text, Noted("there is nothing to switch")),
    flag("goaway-chance", Text, Ignored),
    flag("http2-max-streams-per-connection", Text, Ignored),
    flag("kubelet-certificate-authority", Text, Ignored),
    flag("kubelet-client-certificate", Text, Ignored),
    flag("kubelet-client-key", Text, Ignored),
    flag("kubelet-preferred-address-types", Text, Ignored),
    flag("kubelet-timeout", Text, Ignored),
    flag("kubernetes-service-node-port", Text, Ignored),
    flag("lease-reuse-duration-seconds", Text, Ignored),
    flag("livez-grace-period", Text, Ignored),
    flag("log-flush-frequency", Text, Ignored),
    flag("log-json-info-buffer-size", Text, Ignored),
    flag("log-json-split-stream", Switch, Ignored),
    flag("log-text-info-buffer-size", Text, Ignored),
    flag("log-text-split-stream", Switch, Ignored),
    flag("logging-format", Text, Ignored),
    flag("max-connection-bytes-per-sec", Text, Ignored),
    flag("max-mutating-requests-inflight", Text, Ignored),
    flag("max-requests-inflight", Text, Ignored),
    flag("min-compatibility-version", Text, Ignored),
    flag("min-request-timeout", Text, Ignored),
    flag("oidc-ca-file", Text, OIDC),
    flag("oidc-client-id", Text, OIDC),
    flag("oidc-groups-claim", Text, OIDC),
    flag("oidc-groups-prefix", Text, OIDC),
    flag("oidc-issuer-url", Text, OIDC),
    flag("oidc-required-claim", Text, OIDC),
    flag("oidc-signing-algs", Text, OIDC),
    flag("oidc-username-claim", Text, OIDC),
    flag("oidc-username-prefix", Text, OIDC),
    flag("peer-advertise-ip", Text, Ignored),
    flag("peer-advertise-port", Text, Ignored),
    flag("peer-ca-file", Text, Ignored),
    flag("permit-address-sharing", Switch, Ignored),
    flag("permit-port-sharing", Switch, Ignored),
    flag("profiling", Switch, Ignored),
    flag("proxy-client-cert-file", Text, PROXY),
    flag("proxy-client-key-file", Text, PROXY),
    flag("request-timeout", Text, Used("how long a request may take that is not a watch; 1m by default")),
    flag("requestheader-allowed-names", Text, PROXY),
    flag("requestheader-client-ca-file", Text, PROXY),
    flag("requestheader-extra-headers-prefix", Text, PROXY),
    flag("requestheader-group-headers", Text, PROXY),
    flag("requestheader-uid-headers", Text, PROXY),
    flag("requestheader-username-headers", Text, PROXY),
    flag("runtime-config", Text, Used("only api/all, api/ga, api/beta and api/alpha: every API is served")),
    flag("runtime-config-emulation-forward-compatible", Switch, Ignored),
    flag("secure-port", Text, Used("the port for HTTPS; 6443 by default, 0 takes any that is free")),
    flag("service-account-extend-token-expiration", Switch, Ignored),
    flag("service-account-issuer", Text, Used("who issues tokens of service accounts")),
    flag("service-account-jwks-uri", Text, Used("where others find the keys of tokens; an HTTPS URL")),
    flag("service-account-key-file", Text, Used("keys by which tokens of service accounts are believed")),
    flag("service-account-lookup", Switch, Ignored),
    flag("service-account-max-token-expiration", Text, Ignored),
    flag("service-account-signing-endpoint", Text, Refused("tokens are signed with a key from a file")),
    flag("service-account-signing-key-file", Text, Used("the key that signs tokens of service accounts")),
    flag("service-cluster-ip-range", Text, Used("only 10.0.0.0/24 and what is around it")),
    flag("service-node-port-range", Text, Used("only 30000-32767")),
    flag("show-hidden-metrics-for-version", Text, Ignored),
    flag("shutdown-delay-duration", Text, Ignored),
    flag("shutdown-send-retry-after", Switch, Ignored),
    flag("shutdown-watch-termination-grace-period", Text, Ignored),
    flag("storage-backend", Text, Ignored),
    flag("storage-initialization-timeout", Text, Ignored),
    flag("storage-media-type", Text, Ignored),
    flag("strict-transport-security-directives", Text, Noted("the header is not sent")),
    flag("tls-cert-file", Text, Used("the certificate of this server, instead of that in --cert-dir")),
    flag("tls-cipher-suites", Text, Ignored),
    flag("tls-curve-preferences", Text, Ignored),
    flag("tls-min-version", Text, Ignored),
    flag("tls-private-key-file", Text, Used("its key")),
    flag("tls-sni-cert-key", Text, Noted("there is one certificate only")),
    flag("token-auth-file", Text, Used("bearer tokens: lines of token,user,uid,\"group1,group2\"")),
    flag("tracing-config-file", Text, Noted("nothing is traced")),
    flag("v", Text, Used("how much to log to stderr: from 0, warnings, to 4, everything")),
    flag("vmodule", Text, Ignored),
    flag("watch-cache", Switch, Ignored),
    flag("watch-cache-sizes", Text, Ignored),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &[&str]) -> Result<Line, String> {
        parse(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    fn values(arguments: &[&str]) -> Values {
        match line(arguments) {
            Ok(Line::Serve(values, _)) => values,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_come_behind_an_equals_sign_or_as_the_next_word() {
        let given =
            values(&["--secure-port=1", "--secure-port", "2", "--allow-privileged", "--cert-dir", "a=b"]);
        assert_eq!(given.last("secure-port"), Some("2"));
        assert_eq!(given.last("cert-dir"), Some("a=b"));
        assert_eq!(values(&["-v=4"]).last("v"), Some("4"));
        assert_eq!(values(&["-v", "3"]).last("v"), Some("3"));
    }

    #[test]
    fn lists_are_the_words_of_all_values() {
        let values = values(&["--etcd-servers=a,b", "--etcd-servers", "c"]);
        assert_eq!(values.words("etcd-servers").collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn a_flag_that_kube_apiserver_does_not_have_is_an_error() {
        for wrong in ["--insecure-port=0", "--nonsense", "serve", "-x", "-vx"] {
            assert_eq!(line(&[wrong]), Err(format!("unknown flag: {wrong}")));
        }
        assert_eq!(line(&["--cert-dir"]), Err("flag needs an argument: --cert-dir".to_owned()));
    }

    #[test]
    fn what_would_change_the_meaning_of_a_test_is_refused_and_what_hardly_matters_is_said() {
        let refused = line(&["--oidc-issuer-url=https://example.com"]).unwrap_err();
        assert!(refused.starts_with("--oidc-issuer-url=https://example.com: "), "{refused}");
        assert!(line(&["--oidc-issuer-url="]).is_ok(), "nothing is asked for");
        let Ok(Line::Serve(_, notes)) = line(&["--feature-gates=A=true", "--profiling"]) else { panic!() };
        assert_eq!(notes, ["--feature-gates has no effect: there is nothing to switch"]);
    }

    #[test]
    fn the_help_lists_every_flag_on_a_line_of_its_own() {
        let help = help();
        let has = |name: &str| {
            help.lines().any(|line| line.trim_start().split(' ').next() == Some(&format!("--{name}")))
        };
        assert!(has("secure-port") && has("client-ca-file"));
        assert!(!has("insecure-port"), "it would be passed then");
        let names: Vec<&str> = FLAGS.iter().map(|flag| flag.name).collect();
        assert!(names.is_sorted());
    }
}
