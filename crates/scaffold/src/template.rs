//! The files of `templates/operator`. A new file is one line here.

/// A file of the template: the path in a project, its text, and the part it belongs to, if that is not `""`.
pub(crate) struct Template {
    pub(crate) path: &'static str,
    pub(crate) text: &'static str,
    pub(crate) part: &'static str,
}

macro_rules! files {
    ($($path:literal = $file:literal $(of $part:literal)?),+ $(,)?) => {
        &[$(Template {
            path: $path,
            text: include_str!(concat!("../../../templates/operator/", $file)),
            part: concat!($($part)?),
        }),+]
    };
}

/// All files, in the order in which they are listed.
pub(crate) const FILES: &[Template] = files![
    ".github/workflows/ci.yaml" = ".github/workflows/ci.yaml",
    ".gitignore" = "gitignore",
    "Cargo.toml" = "Cargo.toml",
    "Makefile" = "Makefile",
    "README.md" = "README.md",
    "samples/gadget.yaml" = "samples/gadget.yaml",
    "src/kind.rs" = "src/kind.rs",
    "src/lib.rs" = "src/lib.rs",
    "src/main.rs" = "src/main.rs",
    "src/reconcile.rs" = "src/reconcile.rs",
    "src/source.rs" = "src/source.rs" of "source",
    "src/webhook.rs" = "src/webhook.rs" of "webhook",
    "tests/operator.rs" = "tests/operator.rs",
];
