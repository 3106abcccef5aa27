//! `watchkeeper new`: an operator from the template.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use watchkeeper_scaffold::{self as scaffold, Error, File, Group, Kind, Name, Origin, Part, Project};

use crate::failure::Failure;
use crate::version;

/// Make a new operator: a folder with a crate that compiles, passes its tests and runs
///
/// The kind is declared in src/kind.rs, the work is done in src/reconcile.rs, and both are tested in tests/. The README of the project has the commands.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct New {
    /// What the operator is called, or a path that ends in that: a new folder, a DNS label
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// The kind that it works on [default: NAME, such as WebShop of web-shop]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// The plural of the kind [default: the English one]
    #[arg(long, value_name = "PLURAL")]
    plural: Option<String>,
    /// The group of the kind, a DNS name that you own
    #[arg(long, value_name = "GROUP", default_value = "example.com")]
    group: String,
    /// Objects of the kind live in no namespace
    #[arg(long)]
    cluster_scoped: bool,
    /// What it has besides; may be repeated, or be a list with commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    with: Vec<With>,
    /// A checkout of Watchkeeper to depend on [default: the repository and commit of this program, or the checkout that it was built in]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Say which files there would be, and write none
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper new shop                                  kind Shop in the group example.com
  watchkeeper new ../shop --kind Shop --group shop.example.com
  watchkeeper new shop --with finalizer,source          with a cleanup, and a controller over files
  watchkeeper new quota --cluster-scoped --dry-run      which files would there be?
  watchkeeper new shop --path ../watchkeeper            with the framework of a checkout

  cd shop
  cargo test

Exit codes:
  0  the folder is there
  1  it could not be written; nothing is left of it
  2  what was given cannot be: bad arguments or names, a folder that exists; nothing is written";

/// What a project may have besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum With {
    /// Work that is done before an object goes
    Finalizer,
    /// A controller over the files of a folder
    Source,
    /// Functions that default and judge an object before it is stored
    Webhook,
}

impl New {
    /// Writes the project.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let folder = self.folder()?;
        let source = self.source()?;
        let mut files = self.project(&folder, &source)?.files().map_err(Failure::running)?;
        files.extend(source.lock());
        let shown = self.folder.display();
        if !self.dry_run {
            scaffold::write(&folder, &files).map_err(failure)?;
            format(&folder);
        }
        let mut told = String::new();
        for file in &files {
            told.push_str(&format!("  {shown}/{}\n", file.path));
        }
        told.push_str(&source.note(&folder));
        told.push_str(&match self.dry_run {
            true => "nothing was written: --dry-run\n".to_owned(),
            false => format!("next: cd {shown} && cargo test; README.md has the rest\n"),
        });
        // If nobody listens, nobody misses it.
        let _ = io::stdout().write_all(told.as_bytes());
        Ok(())
    }

    /// The folder to be, absolute. What it is to be in has to exist.
    fn folder(&self) -> Result<PathBuf, Failure> {
        let unnamed =
            || Failure::input(format!("{} does not end in a name: try ./shop", self.folder.display()));
        let name = self.folder.file_name().ok_or_else(unnamed)?;
        let parent = self.folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let parent = fs::canonicalize(parent)
            .map_err(|error| Failure::input(format!("{}: {error}", parent.display())))?;
        let folder = parent.join(name);
        match folder.symlink_metadata() {
            Ok(_) => Err(failure(Error::Exists(self.folder.clone()))),
            Err(_) => Ok(folder),
        }
    }

    fn project(&self, folder: &Path, source: &Source) -> Result<Project, Failure> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let name = Name::new(&name).map_err(failure)?;
        let plural = self.plural.as_deref();
        let kind = match &self.kind {
            Some(kind) => Kind::new(kind, plural),
            None => Kind::of(&name, plural),
        };
        let mut parts = Vec::new();
        for with in &self.with {
            parts.push(match with {
                With::Finalizer => Part::Finalizer,
                With::Source => Part::Source,
                With::Webhook => Part::Webhook,
            });
        }
        Ok(Project {
            name,
            kind: kind.map_err(failure)?,
            group: Group::new(&self.group).map_err(failure)?,
            cluster_scoped: self.cluster_scoped,
            parts: parts.into_iter().collect(),
            origin: source.origin(folder),
        })
    }

    /// Where the framework comes from: what was said, where this program comes from, or the checkout it was built in.
    fn source(&self) -> Result<Source, Failure> {
        if let Some(path) = &self.path {
            let checkout = fs::canonicalize(path).ok().filter(|path| is_checkout(path));
            let missing = || format!("--path {}: no checkout of Watchkeeper is there", path.display());
            return checkout.map(Source::Checkout).ok_or_else(|| Failure::input(missing()));
        }
        if let (Some(repository), Some(commit)) = (option_env!("WATCHKEEPER_REPOSITORY"), version::COMMIT) {
            return Ok(Source::Repository { url: repository, commit });
        }
        let program = env::current_exe().and_then(fs::canonicalize).unwrap_or_default();
        let checkout = program.ancestors().find(|path| is_checkout(path));
        let unknown =
            "this program does not know where it comes from: say --path, with a checkout of Watchkeeper";
        checkout.map(|path| Source::Checkout(path.to_owned())).ok_or_else(|| Failure::input(unknown))
    }
}

/// Where the framework is.
enum Source {
    Checkout(PathBuf),
    Repository { url: &'static str, commit: &'static str },
}

impl Source {
    fn origin(&self, folder: &Path) -> Origin {
        match self {
            Self::Checkout(path) => Origin::from_folder(path, folder),
            Self::Repository { url, commit } => {
                Origin::Git { repository: (*url).to_owned(), commit: (*commit).to_owned() }
            }
        }
    }

    /// What whoever pushes the project has to know.
    fn note(&self, folder: &Path) -> String {
        match self.origin(folder) {
            Origin::Path(path) => format!(
                "note: Cargo.toml and .github/workflows/ci.yaml take the framework from {}, beside this folder: a runner of CI needs a \
                 checkout there, too; or name a repository in both (git = \"URL\", cargo install --git URL watchkeeper-cli)\n",
                path.display()
            ),
            Origin::Git { .. } => String::new(),
        }
    }

    /// The versions that a checkout is tested with. Cargo leaves out what the project does not need.
    fn lock(&self) -> Option<File> {
        let Self::Checkout(path) = self else { return None };
        let text = fs::read_to_string(path.join("Cargo.lock")).ok()?;
        Some(File { path: "Cargo.lock".to_owned(), text })
    }
}

fn is_checkout(path: &Path) -> bool {
    ["crates/watchkeeper/Cargo.toml", "crates/testkit/Cargo.toml"]
        .iter()
        .all(|file| path.join(file).is_file())
}

/// Puts the code into the form of rustfmt, where there is one: names have other lengths than those of the template.
fn format(folder: &Path) {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024", "src/lib.rs", "src/main.rs", "tests/operator.rs"]).current_dir(folder);
    // What is not formatted compiles too.
    let _ = rustfmt.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Name(_) | Error::Exists(_) => Failure::input(error),
        Error::Folder { .. } | Error::Template(_) => Failure::running(error),
    }
}
