use std::path::Path;

use super::*;

const HEAD: &str = "apiVersion: run.watchkeeper.dev/v1alpha1\nkind: Reactor\nspec:\n";
const SOURCES: &str = "  sources:\n  - name: routes\n    url: file:./routes/\n";

fn read(text: &str) -> Result<Reactor, Mistakes> {
    Reactor::read(text, "r.yaml", Path::new("/base"))
}

fn mistakes(text: &str) -> String {
    match read(text) {
        Ok(_) => "none".to_owned(),
        Err(mistakes) => mistakes.to_string(),
    }
}

/// What is wrong with a file of which this is the only reaction.
fn with_reaction(reaction: &str) -> String {
    mistakes(&format!("{HEAD}{SOURCES}  reactions:\n{reaction}"))
}

/// What is wrong with a `do`, which begins in line 10.
fn with_do(action: &str) -> String {
    with_reaction(&format!("  - name: r\n    on: routes\n    do:\n{action}"))
}

/// Everything that is not as expected, to be seen at once.
#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn compare(&mut self, said: &str, expected: &str) {
        if said != expected {
            self.0.push(format!("{said}\n    instead of\n{expected}"));
        }
    }
}

impl Drop for Wrong {
    fn drop(&mut self) {
        assert!(self.0.is_empty(), "{}", self.0.join("\n\n"));
    }
}

#[test]
fn a_file_may_say_everything_that_is_documented() {
    let text = r#"
apiVersion: run.watchkeeper.dev/v1alpha1
kind: Reactor
metadata: {name: example}
spec:
  sources:
  - {name: routes, url: "file:./routes/", settings: {by: path, poll: 5s}}
  - {name: items, url: "https://host/items.json#/items", settings: {key: /id, headers: {X-A: b}, bearerFile: token}}
  - {name: widgets, apiVersion: example.com/v1, kind: Widget, namespace: shop, labels: app=web, fields: metadata.name=a}
  reactions:
  - name: reload
    on: routes
    events: [added, changed]
    filter:
    - changed: .spec.port
    - {path: .spec.enabled, equals: true}
    - {path: .spec.tier, of: old, in: [a, b]}
    - {path: .spec.tier, of: new, notIn: [c]}
    - {path: .spec.tier, notEquals: d}
    - not: {path: .spec.paused, exists: true}
    - any: [{changed: .a}, {path: .b, exists: false}]
    do: {command: [reload, --name, "${name}", 5]}
    concurrency: 4
    timeout: 30s
    retry: {initial: 1s, max: 5m, attempts: 10}
  - {name: more, on: routes, do: {command: {run: [./x], env: {A: "${.a:-}"}, dir: sub, stdin: change}}}
  - {name: sh, on: items, do: {shell: 'echo ${WATCHKEEPER_NAME}'}}
  - {name: sh-2, on: items, do: {command: {shell: cat, stdin: none}}}
  - name: send
    on: widgets
    do:
      post:
        url: https://hooks.example.com/x
        method: PUT
        headers: [{name: A, value: b}, {name: Authorization, prefix: "Bearer ", file: token}, {name: C, env: C}]
        body: {text: "${name} is ${.status.phase}"}
        caFile: ca.pem
  - {name: secret, on: widgets, do: {post: {urlFile: url}}}
  - name: apply
    on: items
    do:
      apply:
        adopt: true
        objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: "${name}"}, data: {a: "${.a}"}}]
"#;
    let reactor = read(text).unwrap();
    assert_eq!((reactor.name(), reactor.size(), reactor.needs_cluster()), ("example", (3, 7), true));
    let minimal = format!("{HEAD}{SOURCES}  reactions: [{{name: r, on: routes, do: {{shell: date}}}}]");
    let reactor = read(&minimal).unwrap();
    assert_eq!((reactor.name(), reactor.needs_cluster()), ("reactor", false));
    let reaction = &reactor.reactions[0];
    assert_eq!((reaction.concurrency, reaction.timeout.as_secs(), reaction.retry), (1, 60, Retry::default()));
}

#[test]
fn what_is_wrong_with_the_whole_is_placed() {
    let mut wrong = Wrong::default();
    for (text, expected) in [
        ("", "r.yaml:1:1: has to be an object, and is empty"),
        ("a: [\n", "r.yaml:2:1: did not find expected node content"),
        (
            "kind: Deployment\nspec: {}\n",
            "r.yaml:1:1: apiVersion is missing\nr.yaml:1:1: kind: has to be Reactor\nr.yaml:2:1: spec: sources is missing\n\
             r.yaml:2:1: spec: reactions is missing",
        ),
        (
            "apiVersion: v1\nkind: Reactor\nspce: {}\n",
            "r.yaml:1:1: apiVersion: has to be run.watchkeeper.dev/v1alpha1\nr.yaml:1:1: spec is missing\n\
             r.yaml:3:1: spce: is not known here; did you mean spec?",
        ),
        (
            &format!("{HEAD}  sources: []\n  reactions: {{}}\n"),
            "r.yaml:4:3: spec.sources: is empty: there is nothing to do\nr.yaml:5:3: spec.reactions: has to be a list, and is an object",
        ),
        (
            &format!(
                "{HEAD}{SOURCES}  reactions: [{{name: r, on: routes, do: {{shell: date}}, do: {{shell: date}}}}]\n---\nx: 1\n"
            ),
            "r.yaml:7:60: \"do\" is given twice\nr.yaml:8:1: the file has a second document, which would not be read",
        ),
    ] {
        wrong.compare(&mistakes(text), expected);
    }
}

#[test]
fn what_is_wrong_with_a_source_is_placed() {
    let mut wrong = Wrong::default();
    let rest = "  reactions: [{name: r, on: routes, do: {shell: date}}]\n";
    for (source, expected) in [
        ("{name: routes}", "r.yaml:5:5: spec.sources[0]: one of url, kind is missing"),
        (
            "{name: Routes!, url: 'file:x'}",
            "r.yaml:5:6: spec.sources[0].name: has to be a name of up to 40 small letters, digits and dashes, such as web-1\nr.yaml:6:25: spec.reactions[0].on: there is no source \"routes\"; did you mean Routes!?",
        ),
        (
            "{name: routes, url: 'file:x', settings: {webhookListen: '8088', webhookSecretFile: s}}",
            "r.yaml:5:46: spec.sources[0].settings.webhookListen: has to be an address and a port, as 127.0.0.1:8088",
        ),
        (
            "{name: routes, url: 'file:x', settings: {webhookListen: '127.0.0.1:8088'}}",
            "r.yaml:5:46: spec.sources[0].settings.webhookListen: webhooks are believed by their signatures: webhookSecretFile is missing",
        ),
        (
            "{name: routes, url: 'file:x', settings: {webhookScheme: github}}",
            "r.yaml:5:46: spec.sources[0].settings.webhookScheme: is for webhooks: say where they are received with webhookListen",
        ),
        (
            "{name: routes, url: 'ftp://me:word@host/x'}",
            "r.yaml:5:20: spec.sources[0].url: is no URL that can be watched: it has to begin with one of file:, http:, https:, postgres:, postgresql:, mysql:, mariadb:, sqlite:, etcd:",
        ),
        (
            "{name: routes, url: 'postgres://me:word@host/x'}",
            "r.yaml:5:20: spec.sources[0].url: it names no table: expected ...?table=NAME",
        ),
        (
            "{name: routes, url: 'file:x', settings: {pol: 5s}}",
            "r.yaml:5:46: spec.sources[0].settings.pol: is not known here; did you mean poll?",
        ),
        (
            "{name: routes, url: 'file:x', settings: {poll: 5}}",
            "r.yaml:5:46: spec.sources[0].settings.poll: has to be a duration such as 90s, 5m or 1h30m",
        ),
        (
            "{name: routes, url: 'file:x', namespace: shop}",
            "r.yaml:5:35: spec.sources[0].namespace: is for sources with a kind, not with a url",
        ),
        (
            "{name: routes, url: 'http://host', settings: {key: id}}",
            "r.yaml:5:51: spec.sources[0].settings.key: \"id\" is not a JSON pointer: it begins with a slash, as /items does",
        ),
        (
            "{name: routes, kind: Widget, settings: {}}",
            "r.yaml:5:5: spec.sources[0]: apiVersion is missing\nr.yaml:5:34: spec.sources[0].settings: is for sources with a url, not with a kind",
        ),
        (
            "{name: routes, url: 'file:x', kind: Widget}",
            "r.yaml:5:35: spec.sources[0].kind: cannot be beside url: one of url, kind is wanted, not kind as well",
        ),
        (
            "{name: routes, url: 'file:x', lables: x}",
            "r.yaml:5:35: spec.sources[0].lables: is not known here; did you mean labels?",
        ),
    ] {
        wrong.compare(&mistakes(&format!("{HEAD}  sources:\n  - {source}\n{rest}")), expected);
    }
    let twice = format!("{HEAD}{SOURCES}  - name: routes\n    url: file:y\n{rest}");
    assert_eq!(
        mistakes(&twice),
        "r.yaml:7:5: spec.sources[1].name: \"routes\" is the name of another one already"
    );
}

#[test]
fn what_is_wrong_with_a_reaction_is_placed() {
    let mut wrong = Wrong::default();
    for (reaction, expected) in [
        ("  - x\n", "r.yaml:8:5: spec.reactions[0]: has to be an object, and is a text"),
        (
            "  - {name: r, on: route, do: {shell: x}}\n",
            "r.yaml:8:15: spec.reactions[0].on: there is no source \"route\"; did you mean routes?",
        ),
        (
            "  - {name: r, on: elephants, do: {shell: x}}\n",
            "r.yaml:8:15: spec.reactions[0].on: there is no source \"elephants\"; known are routes",
        ),
        ("  - {name: r, on: routes}\n", "r.yaml:8:5: spec.reactions[0]: do is missing"),
        (
            "  - {name: r, on: routes, events: [add], do: {shell: x}}\n",
            "r.yaml:8:36: spec.reactions[0].events[0]: \"add\" is not one of added, changed, gone",
        ),
        (
            "  - {name: r, on: routes, concurency: 3, do: {shell: x}}\n",
            "r.yaml:8:27: spec.reactions[0].concurency: is not known here; did you mean concurrency?",
        ),
        (
            "  - {name: r, on: routes, concurrency: 0, do: {shell: x}}\n",
            "r.yaml:8:27: spec.reactions[0].concurrency: has to be a number from 1 to 1000",
        ),
        (
            "  - {name: r, on: routes, timeout: soon, do: {shell: x}}\n",
            "r.yaml:8:27: spec.reactions[0].timeout: has to be a duration such as 90s, 5m or 1h30m",
        ),
        (
            "  - {name: r, on: routes, retry: {initial: 1m, max: 1s}, do: {shell: x}}\n",
            "r.yaml:8:48: spec.reactions[0].retry.max: the first wait is longer than the longest one",
        ),
        (
            "  - {name: r, on: routes, filter: [{changed: spec}], do: {shell: x}}\n",
            "r.yaml:8:37: spec.reactions[0].filter[0].changed: \"spec\" is not a path: paths begin with a dot, as in .spec.name",
        ),
        (
            "  - {name: r, on: routes, filter: [{path: .a}], do: {shell: x}}\n",
            "r.yaml:8:36: spec.reactions[0].filter[0]: one of equals, notEquals, in, notIn, exists is missing",
        ),
        (
            "  - {name: r, on: routes, filter: [{path: '.a[', exists: 1}], do: {shell: x}}\n",
            "r.yaml:8:37: spec.reactions[0].filter[0].path: \".a[\" is not a path: unterminated array\nr.yaml:8:50: spec.reactions[0].filter[0].exists: has to be true or false, and is a number",
        ),
        (
            "  - {name: r, on: routes, filter: [{changed: .a, equals: 1}], do: {shell: x}}\n",
            "r.yaml:8:50: spec.reactions[0].filter[0].equals: needs a path beside it, not changed",
        ),
        (
            "  - {name: r, on: routes, filter: [{cel: 'new.a == 1'}], do: {shell: x}}\n",
            "r.yaml:8:37: spec.reactions[0].filter[0].cel: rules in CEL are not built in yet: use path, changed, any and not",
        ),
        (
            "  - {name: r, on: routes, filter: {changed: .a}, do: {shell: x}}\n",
            "r.yaml:8:27: spec.reactions[0].filter: has to be a list, and is an object",
        ),
    ] {
        wrong.compare(&with_reaction(reaction), expected);
    }
}

#[test]
fn what_is_wrong_with_an_action_is_placed() {
    let mut wrong = Wrong::default();
    for (action, expected) in [
        ("      {}\n", "r.yaml:10:5: spec.reactions[0].do: one of command, shell, post, apply is missing"),
        (
            "      {shell: x, command: [y]}\n",
            "r.yaml:11:8: spec.reactions[0].do.shell: cannot be beside command: one of command, shell, post, apply is wanted, not shell as well",
        ),
        (
            "      command: reload --now\n",
            "r.yaml:11:7: spec.reactions[0].do.command: has to be a list, as in [reload, --now]; shell is for a line with a shell",
        ),
        (
            "      command: []\n",
            "r.yaml:11:7: spec.reactions[0].do.command: is empty: the first item is the program",
        ),
        (
            "      command: ['${.x}']\n",
            "r.yaml:11:17: spec.reactions[0].do.command[0]: the program cannot depend on the object",
        ),
        (
            "      command: [a, '${x}']\n",
            "r.yaml:11:20: spec.reactions[0].do.command[1]: ${x} is neither a path such as ${.spec.name}, ${old.spec.name} or ${new.spec.name}, nor one of event, source, key, namespace and name",
        ),
        (
            "      command: {run: [a], env: {WATCHKEEPER_NAME: x}}\n",
            "r.yaml:11:33: spec.reactions[0].do.command.env.WATCHKEEPER_NAME: cannot be the name of a variable; those that begin with WATCHKEEPER_ are set already",
        ),
        (
            "      command: {run: [a], stdin: objct}\n",
            "r.yaml:11:27: spec.reactions[0].do.command.stdin: \"objct\" is not one of object, change, none; did you mean object?",
        ),
        (
            "      shell: rm ${.spec.file}\n",
            "r.yaml:11:7: spec.reactions[0].do.shell: a shell would run what is in an object: use $WATCHKEEPER_NAME and its like, stdin, or env of command, instead of ${...}",
        ),
        (
            "      post: {}\n",
            "r.yaml:11:7: spec.reactions[0].do.post: one of url, urlFile, urlEnv is missing",
        ),
        (
            "      post: {url: 'ftp://x'}\n",
            "r.yaml:11:14: spec.reactions[0].do.post.url: has to be a URL that begins with http:// or https://",
        ),
        (
            "      post: {url: 'https://me:word@x'}\n",
            "r.yaml:11:14: spec.reactions[0].do.post.url: has a user in it: send a header instead, with its value in a file",
        ),
        (
            "      post: {url: 'https://x', method: GET}\n",
            "r.yaml:11:32: spec.reactions[0].do.post.method: \"GET\" is not one of POST, PUT, PATCH",
        ),
        (
            "      post: {url: 'https://x', headers: [{name: 'a b', value: c}, {name: a}]}\n",
            "r.yaml:11:43: spec.reactions[0].do.post.headers[0].name: cannot be the name of a header\nr.yaml:11:67: spec.reactions[0].do.post.headers[1]: one of value, file, env is missing",
        ),
        (
            "      post:\n        url: https://x\n        body:\n          a: [1, '${.b']\n",
            "r.yaml:14:18: spec.reactions[0].do.post.body.a[1]: ${ is not closed by }; $${ stands for ${ itself",
        ),
        (
            "      apply: {objects: []}\n",
            "r.yaml:11:15: spec.reactions[0].do.apply.objects: is empty: there is nothing to apply",
        ),
        (
            "      apply: {objects: [{kind: '${.kind}', metadata: {}}]}\n",
            "r.yaml:11:25: spec.reactions[0].do.apply.objects[0]: apiVersion is missing\nr.yaml:11:26: spec.reactions[0].do.apply.objects[0].kind: has to be a text without ${...}: what is pruned has to be known beforehand\nr.yaml:11:44: spec.reactions[0].do.apply.objects[0].metadata: name is missing",
        ),
    ] {
        wrong.compare(&with_do(action), expected);
    }
}
