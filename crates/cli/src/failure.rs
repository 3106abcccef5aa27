use std::fmt;
use std::process::ExitCode;

/// Why a command did not do what it was asked. Shown as one line.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was given cannot be: exit code 2.
    Input(String),
    /// Something failed: exit code 1.
    Running(String),
}

impl Failure {
    pub(crate) fn input(reason: impl fmt::Display) -> Self {
        Self::Input(reason.to_string())
    }

    pub(crate) fn running(reason: impl fmt::Display) -> Self {
        Self::Running(reason.to_string())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) => ExitCode::from(2),
            Self::Running(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Input(reason) | Self::Running(reason)) = self;
        f.write_str(reason)
    }
}
