//! Values that somebody forgot: at the edges of their types, and nearly right.

use crate::{Dice, Tree};

/// Numbers at the edges of what Go and Rust can hold, and beyond.
pub(crate) const NUMBERS: &[&str] = &[
    "0", "1", "-1", "-0", "0.0", "-0.0", "1.0", "1.5", "2", "3", "10", "99", "100", "127", "128", "255",
    "256", "443", "8080", "30000", "32767", "32768", "65535", "65536", "2147483647", "2147483648",
    "-2147483648", "-2147483649", "4294967295", "4294967296", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "18446744073709551616", "1e2", "1E2", "1e18", "1e19", "1e308", "1e309", "1e400", "-1e400", "1e-400",
    "5e-324", "1.7976931348623157e308", "0.1", "1e", "01", "+1", ".5", "1.", "0x10", "NaN", "Infinity", "-",
    "123456789012345678901234567890123456789012345678901234567890",
];

/// Numbers that are numbers and mostly small.
const USUAL: &[&str] = &["0", "1", "2", "3", "5", "10", "30", "80", "443", "600", "3600", "8080", "-1"];

const TIMES: &[&str] = &[
    "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.123456Z", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999999Z", "10000-01-01T00:00:00Z",
    "2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T23:59:60Z",
    "2024-01-01T00:00:00+14:00", "2024-01-01T00:00:00-23:59", "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59", "2024-01-01t00:00:00z", "2024-01-01 00:00:00", "2024-01-01",
    "1970-01-01T00:00:00Z", "2024-01-01T00:00:00.1234567890123Z", "-001-01-01T00:00:00Z",
];

const QUANTITIES: &[&str] = &[
    "0", "1", "-1", "100m", "1Ki", "1Gi", "1Ei", "8Ei", "9Ei", "1e3", "1E", "1e-9", "1n", "1u", "0.5", ".5",
    "5.", "+1", "1k", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e400",
    "1e-400", "1e99999999999", "0.000000000001", "99999999999999999999999999999999999Ei", "1Kib", "", " 1",
    "1 ", "1e", "Ki", "m", "1.5Gi", "1e+3", "00001", "0Ki", "-0",
];

const DURATIONS: &[&str] = &[
    "0", "0s", "1s", "30s", "1h", "1.5h", "-1s", "1ns", "1us", "1µs", "2540400h", "2562047h47m16.854775807s",
    "2562047h47m16.854775808s", "9223372036854775807ns", "9223372036854775808ns", "1h1", "h", "", "1d",
    "1e3s", "1_0s", "99999999999999999999h", "-2562047h47m16.854775808s", ".s", "1..5s",
];

const NAMES: &[&str] = &[
    "a", "b", "web", "web-0", "x1", "default", "kubernetes", "a.b", "a.example.com", "A", "a_b", "-a", "a-",
    "", ".", "..", "a..b", "a/b", "a%2fb", "a b", "ä", "a:b", "system:a", "0", "1.2.3.4", "kube-system", "*",
    "a,b", "{namespace}",
];

const WORDS: &[&str] = &[
    "TCP", "UDP", "SCTP", "Always", "Never", "OnFailure", "IfNotPresent", "Exists", "DoesNotExist", "In",
    "NotIn", "Equal", "Gt", "Lt", "NoSchedule", "NoExecute", "PreferNoSchedule", "ClusterIP", "NodePort",
    "LoadBalancer", "ExternalName", "None", "RollingUpdate", "Recreate", "OnDelete", "Parallel",
    "OrderedReady", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod", "Retain", "Delete", "Recycle",
    "Prefix", "Exact", "ImplementationSpecific", "IPv4", "IPv6", "FQDN", "SingleStack", "PreferDualStack",
    "RequireDualStack", "Cluster", "Local", "ClientIP", "Allow", "Forbid", "Replace", "Indexed",
    "NonIndexed", "FailJob", "Ignore", "Count", "Fail", "Equivalent", "Resource", "Pods", "Object",
    "External", "Utilization", "Value", "AverageValue", "Max", "Min", "Disabled", "Ingress", "Egress",
    "Role", "ClusterRole", "User", "Group", "ServiceAccount", "Pod", "Secret", "ConfigMap", "v1", "apps/v1",
    "rbac.authorization.k8s.io", "Immediate", "WaitForFirstConsumer", "Block", "Filesystem", "Bidirectional",
    "HostToContainer", "Terminate", "Orphan", "Background", "Foreground", "Namespaced", "NamespaceBound",
    "Unconfined", "RuntimeDefault", "Localhost", "cpu", "memory", "pods", "requests.storage",
    "nvidia.com/gpu", "kubernetes.io/tls", "kubernetes.io/dockerconfigjson",
    "kubernetes.io/service-account-token", "True", "False", "Unknown", "string", "integer", "object",
    "array", "boolean", "number", "null", "date-time", "byte", "int-or-string", "map", "set", "atomic",
    "granular", "Webhook", "AdmissionReview", "kubernetes.io/kube-apiserver-client", "digital signature",
    "client auth",
];

const TEXTS: &[&str] = &[
    "", "x", "hello", "10.0.0.1", "10.0.0.256", "127.0.0.1", "0.0.0.0", "::1", "::ffff:10.0.0.1",
    "fe80::1%eth0", "10.0.0.0/24", "10.0.0.0/33", "2001:db8::/32", "http", "80", "65536", "25%", "100%",
    "101%", "-1%", "1%%", "* * * * *", "*/0 * * * *", "TZ=UTC * * * * *", "@hourly", "@every 1s",
    "Europe/Berlin", "Nowhere", "YQ==", "YQ=", "YQ", "!", "/", "/x", "../x", "/..", "https://example.com/x",
    "http://user:pass@[::1]:99999/x?y#z", "a.example.com/x", "a/b/c", "nginx", "nginx:1@sha256:00",
    "^[a-z]+$", "(", "(a+)+$", "\\pL{200}", "self.x == 1", "self", "true", "null", "~", "yes", "0x10", "1e3",
    "é", "e\u{301}", "\u{0}", "a\u{0}b", "\u{202e}abc", "\u{200b}", "\u{feff}x", "\u{ffff}", "\u{10ffff}",
    "\u{7f}", "\r\n", "\n", "\t", " x ", "'", "\"", "\\", "%", "%00", "%zz", "{}", "[]", "{{.}}", "$(x)",
    "${x}", ".spec.x", "{.spec.x}", "$.a['b']", "metadata.name", "status.phase", "a=b", "a in (b,c)", "!a",
    "a=b,c!=d", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
];

/// Escapes and bytes that no text can have, with their quotes.
const RAW_TEXTS: &[&[u8]] = &[
    b"\"\\ud800\"", b"\"\\udc00\\ud800\"", b"\"\\ud83d\\ude00\"", b"\"\xff\"", b"\"\xc0\x80\"",
    b"\"\xed\xa0\x80\"", b"\"\xf4\x90\x80\x80\"", b"\"a\x01b\"", b"\"\\u0000\"", b"\"\\x41\"", b"\"\\u12\"",
    b"\"open", b"'x'", b"\"\\/\"", b"tru", b"//",
];

/// A text that may be in a field of this name.
pub(crate) fn text(name: &str, dice: &mut Dice) -> String {
    let lower = name.to_ascii_lowercase();
    let pool = match () {
        () if dice.chance(15) => TEXTS,
        () if lower.ends_with("time") || lower.contains("timestamp") => TIMES,
        () if ["cpu", "memory", "storage", "quantity", "pods"].contains(&lower.as_str())
            || ["limits", "requests", "capacity", "hard", "used", "allocatable", "default", "max", "min"]
                .contains(&lower.as_str()) =>
        {
            QUANTITIES
        }
        () if lower.contains("duration") || lower.contains("timeout") => DURATIONS,
        () if lower.ends_with("name") || lower == "namespace" || lower.contains("host") => NAMES,
        () if dice.chance(40) => WORDS,
        () if dice.chance(10) => QUANTITIES,
        () if dice.chance(10) => TIMES,
        () if dice.chance(30) => NAMES,
        () => TEXTS,
    };
    (*dice.item(pool)).to_owned()
}

/// A number; rarely one that is no number.
pub(crate) fn number(dice: &mut Dice) -> Tree {
    let pool = if dice.chance(60) { USUAL } else { NUMBERS };
    Tree::Number((*dice.item(pool)).to_owned())
}

/// A number at an edge.
pub(crate) fn edge_number(dice: &mut Dice) -> Tree {
    Tree::Number((*dice.item(NUMBERS)).to_owned())
}

/// Text that is too long, too odd, or none.
pub(crate) fn edge_text(name: &str, dice: &mut Dice) -> Tree {
    match dice.below(40) {
        0 => Tree::text("x".repeat(1 << 20)),
        1 | 2 => Tree::text(
            dice.pick(&["a", "a.", "é", "a/", "{", "\u{202e}"])
                .repeat(*dice.item(&[63, 64, 253, 254, 1000, 5000])),
        ),
        3..=5 => Tree::Raw(dice.item(RAW_TEXTS).to_vec()),
        6 => Tree::text(format!("{}{}", text(name, dice), text(name, dice))),
        7..=14 => Tree::text(*dice.item(TEXTS)),
        _ => Tree::text(text(name, dice)),
    }
}

/// Any small value, of any type.
pub(crate) fn any(name: &str, dice: &mut Dice) -> Tree {
    match dice.below(9) {
        0 => Tree::Null,
        1 => Tree::Bool(dice.chance(50)),
        2 | 3 => edge_number(dice),
        4 | 5 => edge_text(name, dice),
        6 => Tree::List((0..dice.below(3)).map(|_| any(name, dice)).collect()),
        _ => Tree::Map((0..dice.below(3)).map(|_| (text("name", dice), any(name, dice))).collect()),
    }
}

/// Names of objects.
pub(crate) fn object_name(dice: &mut Dice) -> &'static str {
    if dice.chance(85) { dice.pick(&["a", "b", "c", "web", "x1"]) } else { dice.pick(NAMES) }
}

/// Durations, for options.
pub(crate) fn duration(dice: &mut Dice) -> &'static str {
    dice.pick(DURATIONS)
}
