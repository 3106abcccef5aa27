use std::time::Duration;

use watchkeeper_wire::{Status, StatusDetails};

use crate::Call;

/// The treatment of a request on its way to the server and back.
///
/// Times are those of tokio's clock.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub(crate) before: Duration,
    pub(crate) end: End,
    pub(crate) after: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Pass,
    Reject {
        code: u16,
        reason: String,
        message: Option<String>,
    },
    Refuse,
    Hang,
    Lose,
    Swallow,
}

impl Outcome {
    /// The request and its answer pass.
    pub fn pass() -> Self {
        Self::default()
    }

    /// The request is answered with a `Status`. The server does not see the request.
    pub fn reject(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::end(End::Reject { code, reason: reason.into(), message: Some(message.into()) })
    }

    /// The request is answered with 403, as for a missing permission.
    pub fn forbid() -> Self {
        Self::end(End::Reject { code: 403, reason: "Forbidden".into(), message: None })
    }

    /// The connection is refused. The server does not see the request.
    pub fn refuse() -> Self {
        Self::end(End::Refuse)
    }

    /// The request hangs: the server does not see it, and no answer ever comes.
    pub fn hang() -> Self {
        Self::end(End::Hang)
    }

    /// The server handles the request, then the connection breaks.
    pub fn lose() -> Self {
        Self::end(End::Lose)
    }

    /// The server handles the request, and no answer ever comes.
    pub fn swallow() -> Self {
        Self::end(End::Swallow)
    }

    /// Delays the request on its way to the server. It arrives even if its sender has given up by then.
    #[must_use]
    pub fn delayed(mut self, by: Duration) -> Self {
        self.before += by;
        self
    }

    /// Delays the answer. The server has handled the request by then.
    #[must_use]
    pub fn answered_late(mut self, by: Duration) -> Self {
        self.after += by;
        self
    }

    fn end(end: End) -> Self {
        Self { end, ..Self::default() }
    }

    /// This, then another: delays add up, and the first that is not a pass decides.
    pub(crate) fn then(self, other: Self) -> Self {
        let end = if self.end == End::Pass { other.end } else { self.end };
        Self { before: self.before + other.before, end, after: self.after + other.after }
    }

    /// Whether the request outlives a sender who gives up.
    pub(crate) fn is_detached(&self) -> bool {
        !self.before.is_zero() || !self.after.is_zero() || matches!(self.end, End::Lose | End::Swallow)
    }
}

/// The `Status` of a request that was turned away.
pub(crate) fn status(code: u16, reason: &str, message: Option<&str>, call: &Call) -> serde_json::Value {
    let message = message.map_or_else(|| call.forbidden(), str::to_owned);
    let details = StatusDetails {
        name: call.name.clone(),
        group: call.group.clone(),
        kind: call.resource.clone(),
        ..StatusDetails::default()
    };
    let status = Status { code: Some(code), reason: reason.into(), message, details: Some(details) };
    status.to_value(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_add_up_and_the_first_end_decides() {
        let second = Duration::from_secs(1);
        let both =
            Outcome::pass().delayed(second).then(Outcome::lose().delayed(second)).then(Outcome::hang());
        assert_eq!((both.before, both.end), (second * 2, End::Lose));
    }
}
