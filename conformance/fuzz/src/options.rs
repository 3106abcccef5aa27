//! What stands behind the question mark, and in the headers.

use crate::mutation::bent;
use crate::{Dice, values};

const LABELS: &[&str] = &[
    "a=b", "a", "!a", "a!=b", "a in (b,c)", "a notin (b)", "a in ()", "a=", "=", ",", "a,", "a=b,c=d",
    "a==b", "a>1", "a<x", "a in b", "(", "a=b,,c", "é=1", "a.example.com/x=1", "a in (b", "x/y/z=1", "",
    "a=b=c", "a\u{0}", "-a=1",
];

const FIELDS: &[&str] = &[
    "metadata.name=a", "metadata.name!=a", "metadata.namespace={namespace}", "status.phase=Running",
    "spec.nodeName=x", "x=y", "metadata.name", "metadata.name==a,metadata.name=b", "=", ",",
    "metadata.name=a\\", "metadata.name=a\\,b", "metadata.name=", "a\\=b=c", "", "type=Opaque",
    "involvedObject.name=a", "spec.unschedulable=false", "metadata.labels.a=b", "metadata.name in (a)",
];

const VERSIONS: &[&str] = &[
    "", "0", "1", "{version}", "{version}", "{version}", "x", "-1", "18446744073709551615",
    "18446744073709551616", "9223372036854775807", "01", "1.0",
];

const FLAGS: &[&str] = &["true", "true", "false", "1", "0", "", "yes", "TRUE", "t", "x"];

/// Up to where a date is none any more, a sum overflows, and a number is none.
const GRACE_PERIODS: &[&str] = &[
    "0", "1", "-1", "30", "x", "", "4294967296", "1e3", "253402300800", "9223372036", "9223372037",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808",
];

/// The options of a list or watch.
pub(crate) fn list(dice: &mut Dice) -> Vec<(String, String)> {
    let mut query = Vec::new();
    for _ in 0..dice.below(4) {
        let (name, value) = match dice.below(14) {
            0 | 1 => ("labelSelector", dice.item(LABELS).to_string()),
            2 | 3 => ("fieldSelector", dice.item(FIELDS).to_string()),
            4 => ("limit", number(dice)),
            5 => (
                "continue",
                dice.pick(&[
                    "{continue}", "{continue}", "x", "", "e30",
                    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8ifQ",
                    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYVx1MDAwMCJ9",
                ])
                .to_owned(),
            ),
            6 | 7 => ("resourceVersion", dice.item(VERSIONS).to_string()),
            8 => ("resourceVersionMatch", dice.pick(&["Exact", "NotOlderThan", "", "x", "exact"]).to_owned()),
            9 => ("timeoutSeconds", number(dice)),
            10 => ("sendInitialEvents", dice.item(FLAGS).to_string()),
            11 => ("allowWatchBookmarks", dice.item(FLAGS).to_string()),
            12 => ("includeObject", dice.pick(&["None", "Metadata", "Object", "x", ""]).to_owned()),
            _ => ("pretty", dice.item(FLAGS).to_string()),
        };
        query.push((name.to_owned(), value));
    }
    odd(&mut query, dice);
    query
}

/// The options of a create, an update or a patch.
pub(crate) fn write(is_apply: bool, dice: &mut Dice) -> Vec<(String, String)> {
    let mut query = Vec::new();
    if is_apply && dice.chance(97) {
        query.push(("fieldManager".to_owned(), dice.pick(&["fuzz", "fuzz", "other", "b"]).to_owned()));
        if dice.chance(60) {
            query.push((
                "force".to_owned(),
                if dice.chance(90) { "true".to_owned() } else { dice.item(FLAGS).to_string() },
            ));
        }
    }
    if dice.chance(20) {
        let (name, value) = match dice.below(6) {
            0 | 1 => ("dryRun", dice.pick(&["All", "All", "", "x", "all"]).to_owned()),
            2 => ("fieldManager", values::text("", dice)),
            3 => ("fieldValidation", dice.pick(&["Strict", "Warn", "Ignore", "", "x"]).to_owned()),
            4 => ("force", dice.item(FLAGS).to_string()),
            _ => ("timeout", values::duration(dice).to_owned()),
        };
        query.push((name.to_owned(), value));
    }
    odd(&mut query, dice);
    query
}

/// The options of a delete.
pub(crate) fn delete(dice: &mut Dice) -> Vec<(String, String)> {
    let mut query = Vec::new();
    for _ in 0..dice.below(3) {
        let (name, value) = match dice.below(5) {
            0 => {
                ("propagationPolicy", dice.pick(&["Foreground", "Background", "Orphan", "", "x"]).to_owned())
            }
            1 => ("gracePeriodSeconds", dice.item(GRACE_PERIODS).to_string()),
            2 => ("orphanDependents", dice.item(FLAGS).to_string()),
            3 => ("dryRun", dice.pick(&["All", "", "x"]).to_owned()),
            _ => ("ignoreStoreReadErrorWithClusterBreakingPotential", dice.item(FLAGS).to_string()),
        };
        query.push((name.to_owned(), value));
    }
    odd(&mut query, dice);
    query
}

fn number(dice: &mut Dice) -> String {
    dice.pick(&[
        "0", "1", "2", "1", "2", "500", "-1", "x", "", "9223372036854775807", "9223372036854775808", "1.5",
        "1e3", " 1",
    ])
    .to_owned()
}

/// Now and then: an option twice, bent, or unknown.
fn odd(query: &mut Vec<(String, String)>, dice: &mut Dice) {
    if !query.is_empty() && dice.chance(6) {
        let again = dice.item(query).clone();
        query.push(again);
    }
    if !query.is_empty() && dice.chance(6) {
        let at = dice.below(query.len());
        query[at].1 = bent(&query[at].1, dice);
    }
    if dice.chance(3) {
        query.push((values::text("", dice), values::text("", dice)));
    }
}

/// The query as it is sent. What is not escaped may make it one that nobody can send.
pub(crate) fn query(options: &[(String, String)], dice: &mut Dice) -> String {
    let mut parts: Vec<String> =
        options.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    if dice.chance(2) {
        parts.push(
            dice.pick(&["%", "%zz", "a;b", "=", "&&", "a=%00", "a=%ff", "+", "watch", "%77atch=1"])
                .to_owned(),
        );
    }
    parts.join("&")
}

/// Everything but letters, digits and braces, which stand for what is filled in later, with a percent sign.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'{' | b'}' => {
                out.push(char::from(byte));
            }
            _ => out += &format!("%{byte:02X}"),
        }
        out
    })
}

const ACCEPTS: &[&str] = &[
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf;stream=watch", "application/json;stream=watch",
    "application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf, application/json",
    "application/json;pretty=1", "application/cbor", "application/cbor-seq, application/json",
];

/// Accept headers that mean little.
const ODD_ACCEPTS: &[&str] = &[
    "", ",", "text/plain", "application/*", "application/json;q=0", "application/json;q=x",
    "application/json;as=", "application/json;as=x;v=v1;g=meta.k8s.io", "json", "*/json", ";;;",
    "application/json;charset=\"utf-8",
];

/// Headers, mostly ordinary.
pub(crate) fn headers(dice: &mut Dice) -> Vec<(String, Vec<u8>)> {
    let mut headers = Vec::new();
    let mut add = |name: &str, value: &[u8]| headers.push((name.to_owned(), value.to_vec()));
    if dice.chance(35) {
        add(
            "accept",
            if dice.chance(95) { dice.item(ACCEPTS).as_bytes() } else { dice.item(ODD_ACCEPTS).as_bytes() },
        );
    }
    if dice.chance(8) {
        let name = dice.pick(&[
            "user-agent", "accept-encoding", "if-none-match", "if-match", "if-modified-since", "range",
            "x-http-method-override", "audit-id", "accept-charset", "x-forwarded-for", "x-remote-user",
            "content-language", "cookie", "traceparent", "x-huge", "warning", "content-encoding", "origin",
            "expect",
        ]);
        let value: Vec<u8> = match (name, dice.below(8)) {
            ("expect", _) => b"100-continue".to_vec(),
            ("accept-encoding", 0..=5) => dice
                .pick(&["gzip", "gzip;q=0", "identity;q=0", "*", "deflate, gzip;q=1.0, *;q=0.5", "br"])
                .into(),
            ("if-none-match" | "if-match", 0..=4) => {
                dice.pick(&["*", "\"x\"", "W/\"1\"", "\"{version}\""]).into()
            }
            ("user-agent", 0..=3) => dice.pick(&["kubectl/v1.30 (linux)", "/", "fuzz", " ", "a b/c"]).into(),
            // It is sent back, and clients of HTTP/2 give up at 16 KiB of headers.
            ("audit-id", 4) => vec![b'x'; 4096],
            (_, 4) => vec![b'x'; *dice.item(&[128, 129, 4096, 30_000])],
            (_, 5) => vec![0xe9, 0xff, b'a'],
            (_, 6) => b"\t \"\\,;=".to_vec(),
            _ => values::text("", dice).bytes().filter(|byte| *byte >= 32 && *byte != 127).collect(),
        };
        add(name, &value);
    }
    if dice.chance(2) {
        add(
            "impersonate-user",
            dice.pick(&["admin", "a", "system:serviceaccount:default:x", "system:anonymous", ""]).as_bytes(),
        );
        if dice.chance(60) {
            add(
                dice.pick(&[
                    "impersonate-group", "impersonate-uid", "impersonate-extra-x", "impersonate-extra-%zz",
                    "impersonate-extra-",
                ]),
                dice.pick(&["system:masters", "x", ""]).as_bytes(),
            );
        }
    }
    headers
}
