//! Reads the `do` of a reaction.

use std::path::{Path, PathBuf};

use http::{HeaderName, Method, Uri};
use serde_json::Value;

use crate::node::{Members, Node};
use crate::print::Print;
use crate::template::{Template, TextTemplate};

/// One of the things that can be done.
#[derive(Debug)]
pub(crate) enum ActionSpec {
    Command(CommandSpec),
    Post(PostSpec),
    Apply(ApplySpec),
}

#[derive(Debug)]
pub(crate) struct CommandSpec {
    pub(crate) program: Program,
    pub(crate) env: Vec<(String, TextTemplate)>,
    pub(crate) dir: PathBuf,
    pub(crate) stdin: Stdin,
}

#[derive(Debug)]
pub(crate) enum Program {
    /// A program and its arguments.
    Arguments(Vec<TextTemplate>),
    /// A line for `/bin/sh`. It has no holes: what is in an object would be run as part of it.
    Shell(String),
}

/// What a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// The newest state of the object.
    Object,
    /// The change, as a request has it.
    Change,
    Nothing,
}

#[derive(Debug)]
pub(crate) struct PostSpec {
    pub(crate) method: Method,
    pub(crate) url: Secret,
    pub(crate) headers: Vec<HeaderSpec>,
    pub(crate) body: Option<Template>,
    pub(crate) ca_file: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct HeaderSpec {
    pub(crate) name: HeaderName,
    pub(crate) prefix: String,
    pub(crate) value: Secret,
}

/// A text that may be a secret, and where it is.
pub(crate) enum Secret {
    Text(String),
    File(PathBuf),
    Env(String),
}

/// Shows where it is, never what it is.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text"),
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Env(name) => write!(f, "Env({name})"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct ApplySpec {
    pub(crate) objects: Vec<ObjectSpec>,
    /// The fingerprint of the templates.
    pub(crate) print: Print,
    /// Whether an object that is there already, and no child of this reaction, is taken over.
    pub(crate) adopt: bool,
}

#[derive(Debug)]
pub(crate) struct ObjectSpec {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) template: Template,
}

pub(super) fn read(node: &Node<'_>, base: &Path) -> Option<ActionSpec> {
    let members = node.members(&["command", "shell", "post", "apply"])?;
    let (what, found) = members.one_of(&["command", "shell", "post", "apply"])?;
    match what {
        "command" => command(&found, base).map(ActionSpec::Command),
        "shell" => {
            let (program, dir) = (Program::Shell(shell(&found)?), base.to_owned());
            Some(ActionSpec::Command(CommandSpec { program, env: Vec::new(), dir, stdin: Stdin::Object }))
        }
        "post" => post(&found, base).map(ActionSpec::Post),
        _ => apply(&found).map(ActionSpec::Apply),
    }
}

fn command(node: &Node<'_>, base: &Path) -> Option<CommandSpec> {
    if node.value.is_array() {
        let program = Program::Arguments(arguments(node)?);
        return Some(CommandSpec { program, env: Vec::new(), dir: base.to_owned(), stdin: Stdin::Object });
    }
    if node.value.is_string() {
        node.wrong("has to be a list, as in [reload, --now]; shell is for a line with a shell");
        return None;
    }
    let members = node.members(&["run", "shell", "env", "dir", "stdin"])?;
    let program = match members.one_of(&["run", "shell"]) {
        Some(("run", node)) => arguments(&node).map(Program::Arguments),
        Some((_, node)) => shell(&node).map(Program::Shell),
        None => None,
    };
    let env = members.get("env").map_or_else(|| Some(Vec::new()), |node| environment(&node));
    let dir = members.get("dir").map_or_else(|| Some(base.to_owned()), |node| node.path(base));
    let stdin = match members.get("stdin").map(|node| node.word(&["object", "change", "none"])) {
        None => Some(Stdin::Object),
        Some(word) => word.map(|word| match word {
            "change" => Stdin::Change,
            "none" => Stdin::Nothing,
            _ => Stdin::Object,
        }),
    };
    Some(CommandSpec { program: program?, env: env?, dir: dir?, stdin: stdin? })
}

fn arguments(node: &Node<'_>) -> Option<Vec<TextTemplate>> {
    let items = node.items();
    if items.is_empty() {
        if node.value.is_array() {
            node.wrong("is empty: the first item is the program");
        }
        return None;
    }
    let read = items.iter().enumerate().map(|(at, item)| {
        let template = text_template(item)?;
        if at == 0 && template.literal().is_none_or(|text| text.is_empty()) {
            item.wrong("the program cannot depend on the object");
            return None;
        }
        Some(template)
    });
    let read: Vec<Option<TextTemplate>> = read.collect();
    read.into_iter().collect()
}

fn shell(node: &Node<'_>) -> Option<String> {
    let text = node.text()?;
    if ["${.", "${old.", "${new.", "${["].iter().any(|hole| text.contains(hole)) {
        node.wrong(
            "a shell would run what is in an object: use $WATCHKEEPER_NAME and its like, stdin, or env of command, instead of ${...}",
        );
        return None;
    }
    Some(text.to_owned())
}

/// A text, a number or a word of YAML, as a template.
fn text_template(node: &Node<'_>) -> Option<TextTemplate> {
    let text = match node.value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => node.value.to_string(),
        _ => {
            node.text();
            return None;
        }
    };
    TextTemplate::read(&text).map_err(|message| node.wrong(message)).ok()
}

fn environment(node: &Node<'_>) -> Option<Vec<(String, TextTemplate)>> {
    let all = node.any_members()?.all();
    let read = all.iter().map(|(name, node)| {
        if name.is_empty() || name.contains(['=', '\0']) || name.starts_with("WATCHKEEPER_") {
            node.wrong(
                "cannot be the name of a variable; those that begin with WATCHKEEPER_ are set already",
            );
            return None;
        }
        Some(((*name).to_owned(), text_template(node)?))
    });
    let read: Vec<Option<_>> = read.collect();
    read.into_iter().collect()
}

fn post(node: &Node<'_>, base: &Path) -> Option<PostSpec> {
    let members = node.members(&["url", "urlFile", "urlEnv", "method", "headers", "body", "caFile"])?;
    let url = secret(&members, ["url", "urlFile", "urlEnv"], base);
    if let (Some(Secret::Text(text)), Some(node)) = (&url, members.get("url"))
        && let Err(message) = check_url(text)
    {
        node.wrong(message);
    }
    let method = match members.get("method").map(|node| node.word(&["POST", "PUT", "PATCH"])) {
        None => Some(Method::POST),
        Some(word) => word.and_then(|word| word.parse().ok()),
    };
    let headers: Vec<Option<HeaderSpec>> = match members.get("headers") {
        Some(node) => node.items().iter().map(|item| header(item, base)).collect(),
        None => Vec::new(),
    };
    let body = match members.get("body") {
        Some(node) => Some(Some(template(&node)?)),
        None => Some(None),
    };
    let ca_file = match members.get("caFile") {
        Some(node) => Some(Some(node.path(base)?)),
        None => Some(None),
    };
    let headers = headers.into_iter().collect::<Option<_>>()?;
    Some(PostSpec { method: method?, url: url?, headers, body: body?, ca_file: ca_file? })
}

/// Says what is wrong with a URL that requests are to be sent to, without showing it.
pub(crate) fn check_url(text: &str) -> Result<Uri, &'static str> {
    const WRONG: &str = "has to be a URL that begins with http:// or https://";
    let uri: Uri = text.parse().map_err(|_| WRONG)?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => {}
        _ => return Err(WRONG),
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("has a user in it: send a header instead, with its value in a file");
    }
    Ok(uri)
}

fn header(node: &Node<'_>, base: &Path) -> Option<HeaderSpec> {
    let members = node.members(&["name", "value", "file", "env", "prefix"])?;
    let name = members.require("name").and_then(|node| {
        let name = node.text()?.parse().map_err(|_| node.wrong("cannot be the name of a header"));
        name.ok()
    });
    let value = secret(&members, ["value", "file", "env"], base);
    let prefix = match members.get("prefix") {
        Some(node) => node.text().map(str::to_owned),
        None => Some(String::new()),
    };
    Some(HeaderSpec { name: name?, prefix: prefix?, value: value? })
}

fn secret(members: &Members<'_>, [text, file, env]: [&'static str; 3], base: &Path) -> Option<Secret> {
    let (form, node) = members.one_of(&[text, file, env])?;
    Some(if form == text {
        Secret::Text(node.text()?.to_owned())
    } else if form == file {
        Secret::File(node.path(base)?)
    } else {
        Secret::Env(node.text()?.to_owned())
    })
}

fn template(node: &Node<'_>) -> Option<Template> {
    Template::read(node.value).map_err(|(pointer, message)| node.wrong_below(&pointer, message)).ok()
}

fn apply(node: &Node<'_>) -> Option<ApplySpec> {
    let members = node.members(&["objects", "adopt"])?;
    let adopt = members.get("adopt").map_or(Some(false), |node| node.bool());
    let objects = members.require("objects")?;
    let items = objects.items();
    if items.is_empty() && objects.value.is_array() {
        objects.wrong("is empty: there is nothing to apply");
    }
    let items: Vec<Option<ObjectSpec>> = items.iter().map(object).collect();
    let print = Print::of(objects.value);
    Some(ApplySpec { objects: items.into_iter().collect::<Option<_>>()?, print, adopt: adopt? })
}

fn object(node: &Node<'_>) -> Option<ObjectSpec> {
    let members = node.any_members()?;
    let template = template(node)?;
    let literal = |name: &str| {
        let member = members.require(name)?;
        let text = template.literal_text(name).map(str::to_owned);
        if text.is_none() {
            member.wrong("has to be a text without ${...}: what is pruned has to be known beforehand");
        }
        text
    };
    let (api_version, kind) = (literal("apiVersion"), literal("kind"));
    if let Some(metadata) = members.require("metadata").and_then(|node| node.any_members()) {
        metadata.require("name");
    }
    let (api_version, kind) = (api_version?, kind?);
    Some(ObjectSpec { api_version, kind, template })
}
