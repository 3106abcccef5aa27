//! What people mean when they name a kind.

use watchkeeper_core::text::distance;

use super::catalogue::Kind;
use crate::failure::Failure;

/// One thing to watch, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// `pods`, `po`, `Deployment.apps`, `deployments.v1.apps`, `all`.
    pub(super) kind: String,
    pub(super) name: Option<String>,
}

/// Reads `pods`, `pods,deployments`, `pods web-1 web-2`, `pods/web-1 deployments/web`.
pub(super) fn read(words: &[String]) -> Result<Vec<Wanted>, Failure> {
    let Some((first, names)) = words.split_first() else {
        return Err(Failure::input("what should be watched? for instance pods, or deployments/web"));
    };
    let pairs = words.iter().any(|word| word.contains('/'));
    let wanted: Vec<Wanted> = if pairs {
        let pair = |word: &String| match word.split_once('/') {
            Some((kind, name))
                if !kind.is_empty() && !name.is_empty() && !name.contains('/') && !kind.contains(',') =>
            {
                Ok(Wanted { kind: kind.to_owned(), name: Some(name.to_owned()) })
            }
            _ => Err(Failure::input(format!(
                "{word:?} is not of the form KIND/NAME, as it has to be where another word is"
            ))),
        };
        words.iter().map(pair).collect::<Result<_, _>>()?
    } else {
        let kinds: Vec<&str> = first.split(',').map(str::trim).filter(|kind| !kind.is_empty()).collect();
        let all = |kind: &&str| {
            let named = |name: Option<&String>| Wanted { kind: (*kind).to_owned(), name: name.cloned() };
            if names.is_empty() {
                vec![named(None)]
            } else {
                names.iter().map(|name| named(Some(name))).collect()
            }
        };
        kinds.iter().flat_map(all).collect()
    };
    match wanted.iter().filter_map(|wanted| wanted.name.as_ref()).find(|name| !is_name(name)) {
        Some(name) => Err(Failure::input(format!("{name:?} cannot be the name of an object"))),
        None if wanted.is_empty() => Err(Failure::input(format!("{first:?} names no kind"))),
        None => Ok(wanted),
    }
}

/// Whether a name can be asked for without meaning something else in a selector. The server says what is no name.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.contains([',', '=', '!', '\\', '%'])
        && !name.chars().any(|char| char.is_whitespace() || char.is_control())
}

/// The kinds that a word stands for: one, or those of a category.
pub(super) fn find<'a>(word: &str, kinds: &'a [Kind]) -> Result<Vec<&'a Kind>, Failure> {
    let lower = word.to_lowercase();
    if let Some(kind) = named(&lower, None, kinds).or_else(|| qualified(&lower, kinds)) {
        return if is_watchable(kind) {
            Ok(vec![kind])
        } else {
            Err(Failure::input(format!(
                "{} cannot be watched: the server offers only {}",
                kind.full_name(),
                kind.verbs.join(", ")
            )))
        };
    }
    let members: Vec<&Kind> = kinds
        .iter()
        .filter(|kind| kind.preferred && is_watchable(kind) && kind.categories.contains(&lower))
        .collect();
    if members.is_empty() { Err(unknown(word, kinds)) } else { Ok(members) }
}

fn is_watchable(kind: &Kind) -> bool {
    ["list", "watch"].iter().all(|verb| kind.verbs.iter().any(|offered| offered == verb))
}

/// `deployments.apps`, `deployments.v1.apps`, `pods.v1`: everything behind the first dot says which group and version.
fn qualified<'a>(word: &str, kinds: &'a [Kind]) -> Option<&'a Kind> {
    let (name, place) = word.split_once('.')?;
    named(name, Some(place.trim_end_matches('.')), kinds)
}

/// The first kind that goes by a name; plural, singular, kind and short names count in this order.
fn named<'a>(name: &str, place: Option<&str>, kinds: &'a [Kind]) -> Option<&'a Kind> {
    let there = |kind: &&Kind| {
        let (group, version) = (kind.resource.group.as_str(), kind.resource.version.as_str());
        place.is_none_or(|place| {
            place == group || place == version && group.is_empty() || place == format!("{version}.{group}")
        })
    };
    let by = |is: &dyn Fn(&Kind) -> bool| kinds.iter().filter(there).find(|kind| is(kind));
    by(&|kind| kind.resource.plural == name)
        .or_else(|| by(&|kind| kind.singular == name || kind.resource.kind.to_lowercase() == name))
        .or_else(|| by(&|kind| kind.short_names.iter().any(|short| short == name)))
}

fn unknown(word: &str, kinds: &[Kind]) -> Failure {
    let near = nearest(&word.to_lowercase(), kinds);
    let hint = if near.is_empty() {
        "`kubectl api-resources` lists what there is".to_owned()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    Failure::input(format!("the server has no kind {word:?}; {hint}"))
}

/// At most three kinds whose names are not far from a word.
fn nearest(word: &str, kinds: &[Kind]) -> Vec<String> {
    let bare = word.split('.').next().unwrap_or(word);
    let close = (bare.chars().count() / 3).max(1);
    let mut found: Vec<(usize, String)> = kinds
        .iter()
        .filter(|kind| kind.preferred && is_watchable(kind))
        .filter_map(|kind| {
            let names = [&kind.resource.plural, &kind.singular].into_iter().chain(&kind.short_names);
            let distance = names.filter(|name| !name.is_empty()).map(|name| distance(bare, name)).min()?;
            let part = bare.len() >= 4 && kind.resource.plural.contains(bare);
            (distance <= close || part)
                .then(|| (if part { distance.min(close) } else { distance }, kind.full_name()))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use kube_core::discovery::ApiResource;

    use super::*;

    fn kind(plural: &str, kind: &str, group: &str, version: &str, short: &[&str], preferred: bool) -> Kind {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let (group, version, plural) = (group.to_owned(), version.to_owned(), plural.to_owned());
        let verbs = if kind == "Binding" { vec!["create"] } else { vec!["list", "watch", "get"] };
        Kind {
            resource: ApiResource { group, version, api_version, kind: kind.to_owned(), plural },
            singular: kind.to_lowercase(),
            short_names: short.iter().map(|&name| name.to_owned()).collect(),
            categories: if matches!(kind, "Pod" | "Deployment" | "Binding") {
                vec!["all".to_owned()]
            } else {
                Vec::new()
            },
            namespaced: true,
            verbs: verbs.into_iter().map(str::to_owned).collect(),
            preferred,
        }
    }

    fn kinds() -> Vec<Kind> {
        vec![
            kind("bindings", "Binding", "", "v1", &[], true),
            kind("events", "Event", "", "v1", &["ev"], true),
            kind("pods", "Pod", "", "v1", &["po"], true),
            kind("deployments", "Deployment", "apps", "v1", &["deploy"], true),
            kind("deployments", "Deployment", "apps", "v1beta1", &["deploy"], false),
            kind("events", "Event", "events.k8s.io", "v1", &["ev"], true),
            kind("greetings", "Greeting", "demo.dev", "v2", &[], true),
        ]
    }

    #[test]
    fn a_kind_goes_by_all_its_names() {
        let kinds = kinds();
        for (word, expected) in [
            ("pods", "v1 pods"),
            ("Pod", "v1 pods"),
            ("po", "v1 pods"),
            ("PODS", "v1 pods"),
            ("pods.v1", "v1 pods"),
            ("pods.v1.", "v1 pods"),
            ("deploy", "apps/v1 deployments"),
            ("deployment.apps", "apps/v1 deployments"),
            ("deployments.v1beta1.apps", "apps/v1beta1 deployments"),
            ("Deployment.v1.apps", "apps/v1 deployments"),
            ("events", "v1 events"),
            ("ev.events.k8s.io", "events.k8s.io/v1 events"),
            ("events.v1.events.k8s.io", "events.k8s.io/v1 events"),
            ("greetings.demo.dev", "demo.dev/v2 greetings"),
        ] {
            let found = find(word, &kinds).unwrap_or_else(|failure| panic!("{word}: {failure}"));
            let found: Vec<_> = found
                .iter()
                .map(|kind| format!("{} {}", kind.resource.api_version, kind.resource.plural))
                .collect();
            assert_eq!(found, [expected], "{word}");
        }
        let all: Vec<_> =
            find("all", &kinds).unwrap_or_default().iter().map(|kind| kind.full_name()).collect();
        assert_eq!(all, ["pods", "deployments.apps"]);
    }

    #[test]
    fn an_unknown_kind_is_answered_with_the_nearest() {
        let kinds = kinds();
        for (word, expected) in [
            ("pdos", "the server has no kind \"pdos\"; did you mean pods?"),
            ("deploymens", "the server has no kind \"deploymens\"; did you mean deployments.apps?"),
            (
                "greetnigs.demo.dev",
                "the server has no kind \"greetnigs.demo.dev\"; did you mean greetings.demo.dev?",
            ),
            ("pods.apps", "the server has no kind \"pods.apps\"; did you mean pods?"),
            ("event", ""),
            (
                "elephants",
                "the server has no kind \"elephants\"; `kubectl api-resources` lists what there is",
            ),
            ("bindings", "bindings cannot be watched: the server offers only create"),
        ] {
            let said = find(word, &kinds).err().map(|failure| failure.to_string()).unwrap_or_default();
            assert_eq!(said, expected, "{word}");
        }
    }

    #[test]
    fn what_is_asked_for_is_kinds_with_names_or_pairs() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let told = |text: &str| match read(&words(text)) {
            Ok(wanted) => {
                let one =
                    |wanted: &Wanted| format!("{}:{}", wanted.kind, wanted.name.as_deref().unwrap_or("*"));
                wanted.iter().map(one).collect::<Vec<_>>().join(" ")
            }
            Err(failure) => failure.to_string(),
        };
        for (text, expected) in [
            ("pods", "pods:*"),
            ("pods,deployments", "pods:* deployments:*"),
            ("pods web-1 web-2", "pods:web-1 pods:web-2"),
            ("pods/web-1 deploy/web", "pods:web-1 deploy:web"),
            (
                "pods/web-1 deploy",
                "\"deploy\" is not of the form KIND/NAME, as it has to be where another word is",
            ),
            ("pods a,b", "\"a,b\" cannot be the name of an object"),
            (",", "\",\" names no kind"),
        ] {
            assert_eq!(told(text), expected);
        }
    }
}
