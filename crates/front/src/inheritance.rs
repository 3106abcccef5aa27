//! Listeners that go from one process to another.

use std::env;
use std::os::fd::OwnedFd;
use std::process::Command;

use command_fds::{CommandFdExt, FdMapping};
use listenfd::ListenFd;

use crate::{Error, Front, Listener};

/// The number of the first file that is inherited, behind stdin, stdout and stderr.
const FIRST_FILE: i32 = 3;

/// # From one process to another
///
/// With the feature `handover`. Sockets are inherited by the protocol of systemd's socket activation: `LISTEN_FDS` says how many
/// there are, beginning with file 3, `LISTEN_FDNAMES` what they are called, `LISTEN_PID` for which process they are. That last
/// one may be missing: nobody knows the number of a process before it is there.
impl Listener {
    /// The sockets that this process has inherited, in order; none if it has not inherited any, or if they are for another
    /// process. They are there once: the variables are removed from the environment, so that processes that this one spawns
    /// do not take them for theirs.
    ///
    /// To be called at the beginning, before there are other threads that may look at the environment.
    pub fn inherited() -> Result<Vec<Self>, Error> {
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':').map(|name| Some(name.to_owned()).filter(|name| !name.is_empty()));
        let mut inherited = ListenFd::from_env();
        let mut listeners = Vec::new();
        for index in 0..inherited.len() {
            let name = names.next().flatten();
            let wrong = |reason: String| {
                let socket = name.clone().unwrap_or_else(|| format!("{} of LISTEN_FDS", index + 1));
                Error::Socket { socket, reason }
            };
            let socket = inherited.take_tcp_listener(index).map_err(|error| wrong(error.to_string()))?;
            let socket = socket.ok_or_else(|| wrong("is not there".into()))?;
            #[cfg(target_os = "linux")] // others cannot tell
            if !socket2::SockRef::from(&socket).is_listener().map_err(|error| wrong(error.to_string()))? {
                return Err(wrong("does not listen".into()));
            }
            let address = socket.local_addr().map_err(|error| wrong(error.to_string()))?;
            listeners.push(Self { socket, address, name });
        }
        Ok(listeners)
    }

    /// Has a process that is about to be spawned inherit listeners, in this order and with their names. It is to be spawned once;
    /// this process keeps them, too.
    pub fn pass<'a>(
        listeners: impl IntoIterator<Item = &'a Listener>,
        command: &mut Command,
    ) -> Result<(), Error> {
        let (mut mappings, mut names) = (Vec::new(), Vec::new());
        for (child_fd, listener) in (FIRST_FILE..).zip(listeners) {
            mappings.push(FdMapping { parent_fd: OwnedFd::from(listener.try_clone()?.socket), child_fd });
            names.push(listener.name().unwrap_or_default());
        }
        command.env("LISTEN_FDS", names.len().to_string());
        command.env("LISTEN_FDNAMES", names.join(":"));
        command.env_remove("LISTEN_PID");
        let passed = command.fd_mappings(mappings);
        passed.map_err(|error| Error::Socket { socket: names.join(":"), reason: error.to_string() })?;
        Ok(())
    }
}

impl Front {
    /// Has a process that is about to be spawned inherit all listeners: see [`Listener::pass`].
    pub fn pass_listeners(&self, command: &mut Command) -> Result<(), Error> {
        Listener::pass(&self.listeners, command)
    }
}
