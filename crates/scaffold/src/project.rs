use std::collections::BTreeSet;

use crate::error::Error;
use crate::marks;
use crate::name::{Group, Kind, Name};
use crate::origin::Origin;
use crate::template;

/// A project to be written. Its names were checked when they were made.
#[derive(Clone, Debug)]
pub struct Project {
    /// What it is called: the package, the program, the names in a cluster.
    pub name: Name,
    /// The kind that it works on.
    pub kind: Kind,
    /// The group of the kind.
    pub group: Group,
    /// Whether objects of the kind live in no namespace.
    pub cluster_scoped: bool,
    /// What it has besides.
    pub parts: BTreeSet<Part>,
    /// Where the framework comes from.
    pub origin: Origin,
}

/// Something that a project may have or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Work that is done before an object goes.
    Finalizer,
    /// A controller over the files of a folder.
    Source,
    /// What is asked before an object is stored.
    Webhook,
}

/// A file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is, from the folder of the project, with `/`.
    pub path: String,
    /// What is in it.
    pub text: String,
}

impl Project {
    /// The files of the project, sorted by their paths.
    ///
    /// # Errors
    ///
    /// If the template is broken, which the tests of this crate would show.
    pub fn files(&self) -> Result<Vec<File>, Error> {
        let mut files = Vec::new();
        for file in template::FILES {
            if self.has(file.part) == Some(false) {
                continue;
            }
            let mut text = marks::keep(file.text, |part| self.has(part))?;
            text = self.origin.apply(&self.rename(&text));
            if file.path == "Cargo.toml" {
                // Cargo looks for a workspace in all folders above; this project is none of the members that it may find.
                text.push_str("\n[workspace]\n");
            }
            files.push(File { path: self.rename(file.path), text });
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }

    fn has(&self, part: &str) -> Option<bool> {
        match part {
            "cluster" => Some(self.cluster_scoped),
            "finalizer" => Some(self.parts.contains(&Part::Finalizer)),
            "source" => Some(self.parts.contains(&Part::Source)),
            "webhook" => Some(self.parts.contains(&Part::Webhook)),
            _ => None,
        }
    }

    /// Replaces the names of the template, in one pass: a name that is put in is not looked at again.
    fn rename(&self, text: &str) -> String {
        let (ident, singular) = (self.name.ident(), self.kind.singular());
        // A name before those that it begins with.
        let names = [
            ("gadgets.example.com", self.group.as_str()),
            ("gadget_operator", &ident),
            ("gadget-operator", self.name.as_str()),
            ("gadgets", self.kind.plural()),
            ("gadget", &singular),
            ("Gadget", self.kind.as_str()),
        ];
        let mut renamed = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['g', 'G']) {
            renamed.push_str(&rest[..at]);
            rest = &rest[at..];
            let (taken, put) = names
                .iter()
                .find(|(name, _)| rest.starts_with(name))
                .map_or((&rest[..1], &rest[..1]), |(name, new)| (*name, *new));
            renamed.push_str(put);
            rest = &rest[taken.len()..];
        }
        renamed + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(name: &str, kind: &str) -> Project {
        Project {
            name: Name::new(name).unwrap(),
            kind: Kind::new(kind, None).unwrap(),
            group: Group::new("example.org").unwrap(),
            cluster_scoped: false,
            parts: BTreeSet::new(),
            origin: Origin::Path("../w".into()),
        }
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        let mut all = project("web-shop", "WebShop");
        for (cluster_scoped, parts) in [
            (false, vec![]),
            (true, vec![Part::Finalizer]),
            (false, vec![Part::Source]),
            (false, vec![Part::Webhook]),
            (true, vec![Part::Finalizer, Part::Source, Part::Webhook]),
        ] {
            all.cluster_scoped = cluster_scoped;
            all.parts = parts.into_iter().collect();
            for File { path, text } in all.files().unwrap() {
                for left in ["gadget", "Gadget", "example.com", "../../", "//=", "#=", "<source>", "</", "<!"]
                {
                    assert!(!text.contains(left), "{left} is in {path}:\n{text}");
                }
                assert!(!path.contains("gadget"), "{path}");
            }
        }
    }

    #[test]
    fn a_project_has_a_dozen_files() {
        let paths = |project: &Project| {
            project.files().unwrap().into_iter().map(|file| file.path).collect::<Vec<_>>()
        };
        let mut shop = project("shop", "Shop");
        let plain = paths(&shop);
        assert_eq!(plain.len(), 11, "{plain:?}");
        assert!(plain.contains(&"samples/shop.yaml".to_owned()));
        shop.parts.insert(Part::Source);
        assert_eq!(paths(&shop).len(), 12);
        shop.parts.insert(Part::Webhook);
        assert_eq!(paths(&shop).len(), 13);
    }

    #[test]
    fn names_that_are_put_in_are_not_replaced_again() {
        let shop = project("gadget-operators", "Gadgets");
        assert_eq!(
            shop.rename("gadget-operator Gadget gadgets gadgets.example.com, go"),
            "gadget-operators Gadgets gadgetses example.org, go"
        );
    }

    #[test]
    fn every_file_of_the_template_is_rendered() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../templates/operator");
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push(path.strip_prefix(&root).unwrap().display().to_string());
                }
            }
        }
        // The style of the template is that of new projects, not that of this workspace.
        found.retain(|path| path != "rustfmt.toml");
        found.sort();
        let mut listed: Vec<_> =
            template::FILES.iter().map(|file| file.path.replace(".gitignore", "gitignore")).collect();
        listed.sort();
        assert_eq!(found, listed);
    }
}
