use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is taken for the limit where the system names none.
const UNLIMITED: u64 = 1 << 20;

/// Lets this process open as many files as it may: raises its soft limit to the hard one, as Go programs do, and says how
/// many that are.
///
/// The soft limit is 1,024 on most systems, for the sake of programs that call `select`; every connection is a file.
/// A limit that cannot be raised stays as it is.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, current = limit.current, "limit of open files could not be raised");
        }
    }
    open_files()
}

/// How many files this process may have open.
pub(crate) fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(UNLIMITED)
}
