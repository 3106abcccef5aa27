use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process;

use clap::Args;

use crate::failure::Failure;

/// Lay out a folder of test binaries for envtest
///
/// The folder has this program in it under the names kube-apiserver and etcd, and kubectl as it is found in $KUBECTL or in
/// $PATH. Whoever looks for the binaries of envtest finds them there:
///
///     export KUBEBUILDER_ASSETS=$(watchkeeper envtest --print-path)
#[derive(Args)]
#[command(verbatim_doc_comment, after_help = EXAMPLES)]
pub(crate) struct Envtest {
    /// Print nothing but the path of the folder
    #[arg(long)]
    print_path: bool,
    /// The folder; by default one for this binary under the user's cache directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  export KUBEBUILDER_ASSETS=$(watchkeeper envtest --print-path); go test ./...
  watchkeeper envtest --dir bin/k8s

Exit codes:
  0  the folder is as it should be
  1  it cannot be written
  2  what was given cannot be: $KUBECTL is not a program, there is no $HOME";

impl Envtest {
    /// Makes the folder, or makes sure that it is as it should be: safe to run again, and by several at once.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let program = env::current_exe().and_then(fs::canonicalize);
        let program = program.map_err(|error| Failure::running(format!("where is this program? {error}")))?;
        let folder = match self.dir {
            Some(folder) => folder,
            None => default_folder(&program)?,
        };
        let folder = std::path::absolute(folder).map_err(Failure::running)?;
        let failed = |error: io::Error| Failure::running(format!("{}: {error}", folder.display()));
        fs::create_dir_all(&folder).map_err(failed)?;
        let kubectl = find_kubectl(&program, &folder)?.unwrap_or_else(|| program.clone());
        for (name, target) in [("kube-apiserver", &program), ("etcd", &program), ("kubectl", &kubectl)] {
            link(&folder, name, target).map_err(failed)?;
        }
        // If nobody listens, nobody misses it.
        let mut stdout = io::stdout();
        let _ = writeln!(stdout, "{}", folder.display());
        if !self.print_path {
            let _ = writeln!(
                stdout,
                "for envtest: export KUBEBUILDER_ASSETS=$(watchkeeper envtest --print-path)"
            );
        }
        Ok(())
    }
}

/// What a person sees who needs a kubectl when there was none to link to.
pub(crate) fn no_kubectl() -> Failure {
    Failure::running(
        "there was no kubectl when this folder was made: install one, or name one in $KUBECTL, and run `watchkeeper envtest` again",
    )
}

/// A folder of its own for every version and place of this program: two of them do not take it from each other.
fn default_folder(program: &Path) -> Result<PathBuf, Failure> {
    let set =
        |name| env::var_os(name).filter(|value: &std::ffi::OsString| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| set("HOME").map(|home| home.join(".cache")));
    let cache = cache.ok_or_else(|| {
        Failure::input(
            "neither $XDG_CACHE_HOME nor $HOME is set: say where the folder should be with --dir DIR",
        )
    })?;
    let mut hasher = DefaultHasher::new();
    program.hash(&mut hasher);
    let place = hasher.finish() as u32;
    Ok(cache.join("watchkeeper").join("envtest").join(format!("{}-{place:08x}", env!("CARGO_PKG_VERSION"))))
}

/// Makes `name` a link to `target`; whoever looks meanwhile finds the old or the new.
fn link(folder: &Path, name: &str, target: &Path) -> io::Result<()> {
    let link = folder.join(name);
    if fs::read_link(&link).is_ok_and(|there| there == target) {
        return Ok(());
    }
    let unfinished = folder.join(format!(".{name}.{}", process::id()));
    // One that was left over by a crash.
    let _ = fs::remove_file(&unfinished);
    symlink(target, &unfinished)?;
    fs::rename(&unfinished, &link)
}

/// The kubectl of `$KUBECTL`, which has to be there, or of `$PATH`; not one that was laid out by us.
fn find_kubectl(program: &Path, folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let named = env::var_os("KUBECTL").filter(|value| !value.is_empty());
    let name = named.as_deref().unwrap_or(OsStr::new("kubectl"));
    let found = if Path::new(name).components().count() > 1 {
        executable(Path::new(name))
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = env::split_paths(&path).filter(|place| place != folder);
        folders
            .map(|place| place.join(name))
            .filter_map(|file| executable(&file))
            .find(|file| file != program)
    };
    match (found, named) {
        (None, Some(name)) => {
            Err(Failure::input(format!("$KUBECTL is {}, which is not a program", name.display())))
        }
        (found, _) => Ok(found),
    }
}

/// Where this program really is, if it is one.
fn executable(file: &Path) -> Option<PathBuf> {
    let data = fs::metadata(file).ok()?;
    // The end of the links decides what a program is; one that asks for its own name should be asked by the right one.
    let file = std::path::absolute(file).ok()?;
    let real = fs::canonicalize(&file).ok()?;
    let is_program = data.is_file() && data.permissions().mode() & 0o111 != 0;
    let keeps_name = real.file_name() == file.file_name();
    is_program.then_some(if keeps_name { real } else { file })
}
