use std::collections::BTreeMap;

/// The group of everybody whose identity is known.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user that requests without credentials come from.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group that may do everything, whatever the rules say.
pub const MASTERS: &str = "system:masters";

/// The user of a request, in the terms of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name of the user.
    pub user: String,
    /// The uid, which tells users of the same name apart over time; may be empty.
    pub uid: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
    /// Further attributes from the authenticator.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A known user in these groups, and in `system:authenticated`.
    pub fn new(user: impl Into<String>, groups: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { user: user.into(), groups, ..Self::default() }.authenticated()
    }

    /// Whoever holds the admin token: user `admin` in `system:masters`.
    pub fn admin() -> Self {
        Self::new("admin", [MASTERS])
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> Self {
        Self { user: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Whether it is known who this is.
    pub(crate) fn is_authenticated(&self) -> bool {
        self.groups.iter().any(|group| group == AUTHENTICATED)
    }

    /// Adds the group `system:authenticated`, except to somebody anonymous and where an authenticator has already said
    /// which of the two it is.
    pub(super) fn authenticated(mut self) -> Self {
        let told = self.groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED);
        if self.user != ANONYMOUS && !told {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }
}
