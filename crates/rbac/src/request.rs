/// A request, in the words of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The verb: `get`, `list`, `create`, `impersonate`; for paths the method of the request in lower case.
    pub verb: &'a str,
    /// The resource or the path of the request.
    pub about: About<'a>,
}

/// The resource or the path of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    /// A resource, or an object of it. Fields that do not apply are empty.
    Resource {
        /// The API group; empty for the core group.
        group: &'a str,
        /// The plural name of the resource.
        resource: &'a str,
        /// The subresource.
        subresource: &'a str,
        /// The namespace; empty for resources without namespaces, and for all namespaces.
        namespace: &'a str,
        /// The name of the object.
        name: &'a str,
    },
    /// A path that leads to no resource.
    Path(&'a str),
}

impl<'a> Request<'a> {
    /// The namespace that the request is limited to; empty for none.
    pub fn namespace(&self) -> &'a str {
        match self.about {
            About::Resource { namespace, .. } => namespace,
            About::Path(_) => "",
        }
    }
}

/// The user of a request.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// The name of the user.
    pub name: &'a str,
    /// The groups that the user is in.
    pub groups: &'a [String],
}

impl User<'_> {
    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }
}

/// What the user names of service accounts begin with.
const ACCOUNTS: &str = "system:serviceaccount:";

/// The user name of a service account.
pub fn account_user(namespace: &str, name: &str) -> String {
    format!("{ACCOUNTS}{namespace}:{name}")
}

/// The namespace and the name of the service account that a user is.
pub fn account_name(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNTS)?.split_once(':')?;
    let is_name = |text: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        text.split('.').all(|label| {
            let bytes = label.as_bytes();
            bytes.first().is_some_and(|byte| inner(*byte))
                && bytes.last().is_some_and(|byte| inner(*byte))
                && bytes.iter().all(|byte| inner(*byte) || *byte == b'-')
        })
    };
    let fits = namespace.len() <= 63 && !namespace.contains('.') && name.len() <= 253;
    (fits && is_name(namespace) && is_name(name)).then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_service_account_if_both_names_could_be() {
        assert_eq!(account_name("system:serviceaccount:a:b.c-d"), Some(("a", "b.c-d")));
        assert_eq!(account_name(&account_user("x", "y")), Some(("x", "y")));
        for other in [
            "jane",
            "system:serviceaccount:",
            "system:serviceaccount:a",
            "system:serviceaccount:a:",
            "system:serviceaccount::b",
            "system:serviceaccount:a:b:c",
            "system:serviceaccount:a.b:c",
            "system:serviceaccount:A:b",
            "system:serviceaccount:a:-b",
            "system:serviceaccount:a:b..c",
        ] {
            assert_eq!(account_name(other), None, "{other}");
        }
    }
}
