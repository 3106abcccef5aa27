use crate::{ApiError, Stop, Usage};

/// A piece of an answer that comes as a stream, whatever dialect it was written in.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The answer begins.
    Start {
        /// Which answer, as the provider names it.
        id: String,
        /// The model that writes it.
        model: String,
    },
    /// More text.
    Text(String),
    /// More thoughts.
    Thinking(String),
    /// A tool is called; its arguments follow.
    ToolStart {
        /// Which call.
        id: String,
        /// Which tool.
        name: String,
    },
    /// More of the arguments of the tool that was called last.
    ToolArguments(String),
    /// The model stopped.
    Finish(Stop),
    /// What was used so far.
    Usage(Usage),
    /// The provider failed.
    Error(ApiError),
}
