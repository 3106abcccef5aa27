//! The names of a project, checked.

use std::fmt;

use crate::error::Error;

/// The longest name of a project: names that are made of it (`NAME-metrics-reader`) stay within the 63 characters of a label.
const LONGEST_NAME: usize = 40;
/// The longest DNS label.
const LABEL: usize = 63;

/// Words of Rust, crates that every operator has, and folders of Cargo. None of them can be the name of a package.
const RESERVED: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "k8s-openapi",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "tempfile",
    "test",
    "tokio",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "watchkeeper",
    "watchkeeper-testkit",
    "where",
    "while",
    "yield",
];

/// Types that the code of the template uses by these names.
const TAKEN: &[&str] = &[
    "Action",
    "AdmissionRequest",
    "Arc",
    "Cache",
    "Client",
    "Condition",
    "ConfigMap",
    "Connection",
    "Context",
    "Controller",
    "CustomResourceExt",
    "Default",
    "Description",
    "Duration",
    "DynamicKind",
    "DynamicObject",
    "Eq",
    "Err",
    "Error",
    "Event",
    "Every",
    "Files",
    "Key",
    "Kind",
    "Manager",
    "None",
    "Ok",
    "Option",
    "PartialEq",
    "Path",
    "Predicate",
    "Reconciler",
    "Request",
    "Resource",
    "ResourceExt",
    "Result",
    "Running",
    "Self",
    "Some",
    "String",
    "TestEnv",
    "Vec",
    "Verbs",
    "Verdict",
    "Watch",
    "Webhook",
    "World",
];

/// The name of a project: a DNS label that is also the name of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// If it is not a DNS label that begins with a letter, is longer than 40 characters, or is a word that Rust or Cargo keeps for itself.
    pub fn new(name: &str) -> Result<Self, Error> {
        if !is_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
            return Err(Error::Name(format!(
                "{name:?} cannot be the name of an operator: use lowercase letters, digits and hyphens, beginning with a letter, such as shop-operator"
            )));
        }
        if name.len() > LONGEST_NAME {
            return Err(Error::Name(format!(
                "{name:?} is too long for the name of an operator: use at most {LONGEST_NAME} characters"
            )));
        }
        if RESERVED.contains(&name) {
            return Err(Error::Name(format!(
                "{name:?} cannot be the name of an operator, for Rust or Cargo use it: try {name}-operator"
            )));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the crate in Rust code.
    pub fn ident(&self) -> String {
        self.0.replace('-', "_")
    }
}

/// The name of a kind, such as `Shop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    name: String,
    plural: String,
}

impl Kind {
    /// Checks the name of a kind; without a plural, its English one is taken.
    ///
    /// # Errors
    ///
    /// If it is no name of a type in Rust (letters and digits, a capital first), is a name that the framework uses, or if the plural is
    /// no DNS label.
    pub fn new(name: &str, plural: Option<&str>) -> Result<Self, Error> {
        let mut chars = name.chars();
        let is_type = chars.next().is_some_and(|first| first.is_ascii_uppercase())
            && chars.all(|char| char.is_ascii_alphanumeric());
        if !is_type || name.len() > LABEL {
            return Err(Error::Name(format!(
                "{name:?} cannot be a kind: use letters and digits, beginning with a capital, such as Shop"
            )));
        }
        if TAKEN.contains(&name) {
            return Err(Error::Name(format!(
                "{name:?} cannot be a kind here, for the framework has a type of that name: choose another, such as My{name}"
            )));
        }
        let plural = plural.map_or_else(|| english_plural(&name.to_ascii_lowercase()), str::to_owned);
        if !is_label(&plural) || !plural.starts_with(|first: char| first.is_ascii_lowercase()) {
            return Err(Error::Name(format!(
                "{plural:?} cannot be a plural: use lowercase letters and digits, beginning with a letter, such as shops"
            )));
        }
        Ok(Self { name: name.to_owned(), plural })
    }

    /// The kind that a project of this name most likely has: `web-shop` gives `WebShop`, `shop-operator` gives `Shop`.
    ///
    /// # Errors
    ///
    /// If that is a name that the framework uses.
    pub fn of(name: &Name, plural: Option<&str>) -> Result<Self, Error> {
        let stem = name.as_str();
        let stem =
            stem.strip_suffix("-operator").or_else(|| stem.strip_suffix("-controller")).unwrap_or(stem);
        let mut kind = String::new();
        for word in stem.split('-') {
            let mut chars = word.chars();
            kind.extend(chars.next().map(|first| first.to_ascii_uppercase()));
            kind.push_str(chars.as_str());
        }
        Self::new(&kind, plural)
    }

    /// The name of the kind and of its type.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// As in URLs and in `kubectl get`.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// One of it, in lower case.
    pub fn singular(&self) -> String {
        self.name.to_ascii_lowercase()
    }
}

/// The group of a kind, such as `example.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group(String);

impl Group {
    /// Checks a group.
    ///
    /// # Errors
    ///
    /// If it is no DNS name with a dot, or belongs to Kubernetes, which refuses definitions in its groups unless they were approved.
    pub fn new(group: &str) -> Result<Self, Error> {
        if group.len() > 180 || !group.contains('.') || !group.split('.').all(is_label) {
            return Err(Error::Name(format!(
                "{group:?} cannot be a group: use a DNS name with a dot that you own, such as shop.example.com"
            )));
        }
        let belongs = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
        if belongs("k8s.io") || belongs("kubernetes.io") {
            return Err(Error::Name(format!(
                "{group:?} belongs to Kubernetes, which refuses definitions in it: use a DNS name that you own, such as shop.example.com"
            )));
        }
        Ok(Self(group.to_owned()))
    }

    /// The group.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_label(text: &str) -> bool {
    let inner = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    !text.is_empty()
        && text.len() <= LABEL
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn english_plural(word: &str) -> String {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if let Some(stem) = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        return format!("{stem}ies");
    }
    if ends(&["s", "x", "z", "ch", "sh"]) { format!("{word}es") } else { format!("{word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_dns_label_and_a_package() {
        for name in ["shop", "web-shop", "a1", "x"] {
            assert!(Name::new(name).is_ok(), "{name}");
        }
        let long = "a".repeat(41);
        for name in [
            "",
            "Shop",
            "web_shop",
            "-a",
            "a-",
            "1a",
            "a.b",
            "a/b",
            "..",
            "sh\u{f6}p",
            "a b",
            "match",
            "test",
            "tokio",
            &long,
        ] {
            let error = Name::new(name).unwrap_err().to_string();
            assert!(error.contains(&format!("{name:?}")) && error.contains(": "), "{error}");
        }
        assert_eq!(Name::new("web-shop").unwrap().ident(), "web_shop");
    }

    #[test]
    fn a_kind_is_a_type_with_a_plural() {
        let plurals = [
            ("Shop", "shops"),
            ("WebShop", "webshops"),
            ("Policy", "policies"),
            ("Key1", "key1s"),
            ("Box", "boxes"),
            ("Gateway", "gateways"),
            ("Batch", "batches"),
            ("Redis", "redises"),
        ];
        for (kind, plural) in plurals {
            assert_eq!(Kind::new(kind, None).unwrap().plural(), plural);
        }
        assert_eq!(Kind::new("Dns", Some("dns")).unwrap().plural(), "dns");
        for kind in
            ["", "shop", "Web-Shop", "1Shop", "Sh\u{f6}p", "Context", "ConfigMap", "Self", "Webhook", "Shop "]
        {
            assert!(Kind::new(kind, None).is_err(), "{kind}");
        }
        assert!(Kind::new("Shop", Some("Shops")).is_err());
        let of = |name: &str| Kind::of(&Name::new(name).unwrap(), None).map(|kind| kind.as_str().to_owned());
        assert_eq!(of("web-shop").unwrap(), "WebShop");
        assert_eq!(of("shop-operator").unwrap(), "Shop");
        assert!(of("context").is_err());
    }

    #[test]
    fn no_kind_has_a_name_that_the_template_uses() {
        let files = crate::template::FILES.iter().filter(|file| file.path.ends_with(".rs"));
        for line in files.flat_map(|file| file.text.lines()) {
            let line = line.trim().trim_start_matches("//=").trim();
            if line.starts_with("//") {
                continue;
            }
            // What is between quotes is text.
            let code: String = line.split('"').step_by(2).collect::<Vec<_>>().join(" ");
            let words = code.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
            for word in words.filter(|word| !word.starts_with("Gadget")) {
                let is_type = word.starts_with(|first: char| first.is_ascii_uppercase())
                    && word.contains(|char: char| char.is_ascii_lowercase());
                assert!(!is_type || TAKEN.contains(&word), "{word} is not taken: {line}");
            }
        }
    }

    #[test]
    fn a_group_is_a_dns_name_of_ones_own() {
        for group in ["example.com", "shop.example.com", "a.b"] {
            assert!(Group::new(group).is_ok(), "{group}");
        }
        for group in
            ["", "example", "Example.com", "a..b", ".a", "apps.k8s.io", "k8s.io", "x.kubernetes.io", "a_b.c"]
        {
            assert!(Group::new(group).is_err(), "{group}");
        }
        assert!(Group::new("myk8s.io").is_ok());
    }
}
