use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use crate::{Binding, ClusterRole, Request, Role, Rule, Subject, User, account_user};

/// All roles and bindings at one moment.
///
/// What applies to somebody is found by their name and groups: a decision costs as much as they have bindings, however
/// many there are in all.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    cluster_roles: BTreeMap<String, Arc<ClusterRole>>,
    /// By namespace and name.
    roles: HashMap<String, BTreeMap<String, Arc<Role>>>,
    /// By namespace; those of cluster role bindings have none.
    bindings: HashMap<String, Bindings>,
}

/// The bindings of one namespace.
#[derive(Clone, Debug, Default)]
struct Bindings {
    by_name: BTreeMap<String, Arc<Binding>>,
    /// The names of bindings by user; a service account is the user it is.
    users: HashMap<String, BTreeSet<String>>,
    groups: HashMap<String, BTreeSet<String>>,
}

/// Whether a request is allowed.
#[derive(Clone, Debug)]
pub enum Decision {
    /// The request is allowed.
    Allowed(Grant),
    /// The request is denied. The reasons name roles that could not be found and might have allowed it.
    Denied(Vec<String>),
}

/// The binding that allows a request. Its `Display` is the message of kube-apiserver.
#[derive(Clone, Debug)]
pub struct Grant {
    binding: Arc<Binding>,
    subject: Subject,
}

/// The rules that apply to a user.
#[derive(Clone, Debug, Default)]
pub struct RulesOf {
    /// The rules.
    pub rules: Vec<Rule>,
    /// The reasons why rules may be missing.
    pub failures: Vec<String>,
}

impl Policy {
    /// Takes in, replaces or forgets a ClusterRole.
    pub fn set_cluster_role(&mut self, name: &str, role: Option<ClusterRole>) {
        match role {
            Some(role) => self.cluster_roles.insert(name.to_owned(), Arc::new(role)),
            None => self.cluster_roles.remove(name),
        };
    }

    /// Takes in, replaces or forgets a Role.
    pub fn set_role(&mut self, namespace: &str, name: &str, role: Option<Role>) {
        match role {
            Some(role) => {
                self.roles.entry(namespace.to_owned()).or_default().insert(name.to_owned(), Arc::new(role));
            }
            None => {
                if let Some(roles) = self.roles.get_mut(namespace) {
                    roles.remove(name);
                    if roles.is_empty() {
                        self.roles.remove(namespace);
                    }
                }
            }
        }
    }

    /// Takes in, replaces or forgets a RoleBinding or, where the namespace is empty, a ClusterRoleBinding.
    pub fn set_binding(&mut self, namespace: &str, name: &str, binding: Option<Binding>) {
        let bindings = self.bindings.entry(namespace.to_owned()).or_default();
        bindings.set(name, binding);
        if bindings.by_name.is_empty() {
            self.bindings.remove(namespace);
        }
    }

    /// The ClusterRoles, by name.
    pub fn cluster_roles(&self) -> impl Iterator<Item = &ClusterRole> + Clone {
        self.cluster_roles.values().map(|role| &**role)
    }

    /// Whether somebody may do something.
    pub fn decide(&self, user: &User<'_>, request: &Request<'_>) -> Decision {
        let mut failures = Vec::new();
        for binding in self.bindings_of(user, request.namespace()) {
            match self.rules_in(binding) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(request)) => {
                    if let Some(subject) = binding.subject(user).cloned() {
                        return Decision::Allowed(Grant { binding: Arc::clone(binding), subject });
                    }
                }
                Ok(_) => {}
                Err(failure) => failures.push(failure),
            }
        }
        Decision::Denied(failures)
    }

    /// All rules that apply to somebody in a namespace; without one, those that apply everywhere.
    pub fn rules_of(&self, user: &User<'_>, namespace: &str) -> RulesOf {
        let mut all = RulesOf::default();
        for binding in self.bindings_of(user, namespace) {
            match self.rules_in(binding) {
                Ok(rules) => all.rules.extend_from_slice(rules),
                Err(failure) => all.failures.push(failure),
            }
        }
        all
    }

    /// The rules of the role that a binding gives to its subjects; the error says why there are none.
    pub fn rules_in(&self, binding: &Binding) -> Result<&[Rule], String> {
        let name = binding.role.name.as_str();
        let missing = |kind: &str| format!("{kind}.rbac.authorization.k8s.io {name:?} not found");
        match binding.role.kind.as_str() {
            "ClusterRole" => {
                let role = self.cluster_roles.get(name).ok_or_else(|| missing("clusterrole"))?;
                Ok(&role.rules)
            }
            "Role" => {
                let role = self.roles.get(&binding.namespace).and_then(|roles| roles.get(name));
                Ok(&role.ok_or_else(|| missing("role"))?.rules)
            }
            kind => Err(format!("unsupported role reference kind: {kind:?}")),
        }
    }

    /// What is bound to somebody: everywhere, then in a namespace, in the order of names.
    fn bindings_of(&self, user: &User<'_>, namespace: &str) -> impl Iterator<Item = &Arc<Binding>> {
        let of = |namespace: &str| self.bindings.get(namespace).map(|bindings| bindings.of(user));
        let everywhere = of("").into_iter().flatten();
        let here = if namespace.is_empty() { None } else { of(namespace) };
        everywhere.chain(here.into_iter().flatten())
    }
}

impl Bindings {
    fn set(&mut self, name: &str, binding: Option<Binding>) {
        if let Some(old) = self.by_name.remove(name) {
            for subject in &old.subjects {
                let Some((index, key)) = self.index(subject, &old.namespace) else { continue };
                if let Some(names) = index.get_mut(&key) {
                    names.remove(name);
                    if names.is_empty() {
                        index.remove(&key);
                    }
                }
            }
        }
        let Some(binding) = binding else { return };
        for subject in &binding.subjects {
            if let Some((index, key)) = self.index(subject, &binding.namespace) {
                index.entry(key).or_default().insert(name.to_owned());
            }
        }
        self.by_name.insert(name.to_owned(), Arc::new(binding));
    }

    /// Where the bindings of a subject are found, and under which name.
    fn index(
        &mut self,
        subject: &Subject,
        namespace: &str,
    ) -> Option<(&mut HashMap<String, BTreeSet<String>>, String)> {
        match subject.kind.as_str() {
            "User" => Some((&mut self.users, subject.name.clone())),
            "Group" => Some((&mut self.groups, subject.name.clone())),
            "ServiceAccount" => {
                Some((&mut self.users, account_user(subject.namespace_in(namespace), &subject.name)))
            }
            _ => None,
        }
    }

    fn of(&self, user: &User<'_>) -> impl Iterator<Item = &Arc<Binding>> {
        let groups = user.groups.iter().filter_map(|group| self.groups.get(group));
        let names: BTreeSet<&String> =
            self.users.get(user.name).into_iter().chain(groups).flatten().collect();
        names.into_iter().filter_map(|name| self.by_name.get(name))
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role, .. } = &*self.binding;
        match namespace.as_str() {
            "" => write!(f, "RBAC: allowed by ClusterRoleBinding {name:?}")?,
            namespace => write!(f, "RBAC: allowed by RoleBinding {:?}", format!("{name}/{namespace}"))?,
        }
        write!(f, " of {} {:?} to {}", role.kind, role.name, self.subject.described(namespace))
    }
}

impl Decision {
    /// Whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// The reason of the decision, in the words of kube-apiserver; empty if no rule allows the request and none was missing.
    pub fn reason(&self) -> String {
        match self {
            Self::Allowed(grant) => grant.to_string(),
            Self::Denied(failures) => {
                joined(failures).map(|failures| format!("RBAC: {failures}")).unwrap_or_default()
            }
        }
    }
}

/// Several failures as one, each said once; `None` if there are none.
pub(crate) fn joined(failures: &[String]) -> Option<String> {
    let mut said: Vec<&str> = Vec::new();
    for failure in failures {
        if !said.contains(&failure.as_str()) {
            said.push(failure);
        }
    }
    match said.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
