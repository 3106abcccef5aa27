//! The roles and bindings that every cluster begins with: those of administrators, editors and viewers, of everybody, and of
//! the parts of the cluster itself.

use crate::{Binding, ClusterRole, Role, RoleRef, Rule, Selector, Subject, aggregated};

const TABLE: &str = include_str!("policy.txt");

/// The label by which a role is a part of another.
const PART_OF: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// What stands for several verbs in the table.
const VERBS: [(&str, &str); 4] = [
    ("read", "get,list,watch"),
    ("write", "create,delete,deletecollection,patch,update"),
    ("manage", "create,delete,deletecollection,get,list,patch,update,watch"),
    ("record", "create,patch,update"),
];

/// The roles and bindings that every cluster begins with.
#[derive(Clone, Debug, Default)]
pub struct Bootstrap {
    /// The ClusterRoles. Those that are sums have the rules of their parts.
    pub cluster_roles: Vec<ClusterRole>,
    /// The Roles.
    pub roles: Vec<Role>,
    /// The RoleBindings and ClusterRoleBindings.
    pub bindings: Vec<Binding>,
}

/// Where the rules of the table go.
enum Last {
    ClusterRole,
    Role,
}

impl Bootstrap {
    /// Reads the table.
    pub fn new() -> Self {
        let mut all = Self::default();
        let mut last = Last::ClusterRole;
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["role", name] if name.contains('/') => {
                    let (namespace, name) = name.split_once('/').unwrap_or_default();
                    all.roles.push(Role {
                        namespace: namespace.into(),
                        name: name.into(),
                        rules: Vec::new(),
                    });
                    last = Last::Role;
                }
                ["role", name, sums @ ..] => {
                    all.cluster_roles.push(cluster_role(name, sums));
                    last = Last::ClusterRole;
                }
                ["controller", name] => {
                    let role = format!("system:controller:{name}");
                    all.cluster_roles.push(cluster_role(&role, &[]));
                    let account = format!("account:kube-system/{name}");
                    all.bindings.push(binding(&role, &role, &[account.as_str()]));
                    last = Last::ClusterRole;
                }
                ["binding", name, "to", role, "of", subjects @ ..] => {
                    all.bindings.push(binding(name, role, subjects));
                }
                words => {
                    let rules = match last {
                        Last::ClusterRole => all.cluster_roles.last_mut().map(|role| &mut role.rules),
                        Last::Role => all.roles.last_mut().map(|role| &mut role.rules),
                    };
                    rules.into_iter().for_each(|rules| rules.push(rule(words)));
                }
            }
        }
        all.sum_up();
        all
    }

    /// Gives the sums the rules of their parts. A part may be a sum itself, so this is done until nothing changes.
    fn sum_up(&mut self) {
        loop {
            let mut changed = false;
            for index in 0..self.cluster_roles.len() {
                let role = &self.cluster_roles[index];
                if let Some(rules) = aggregated(role, self.cluster_roles.iter())
                    && rules != role.rules
                {
                    self.cluster_roles[index].rules = rules;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }
}

fn cluster_role(name: &str, sums: &[&str]) -> ClusterRole {
    let mut role = ClusterRole { name: name.into(), ..ClusterRole::default() };
    for pair in sums.chunks(2) {
        match pair {
            ["part-of", sum] => {
                role.labels.insert(format!("{PART_OF}{sum}"), "true".into());
            }
            ["sum-of", sum] => role.sum_of.push(Selector::label(&format!("{PART_OF}{sum}"), "true")),
            _ => {}
        }
    }
    role
}

fn binding(name: &str, role: &str, subjects: &[&str]) -> Binding {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let role = match role.split_once('/') {
        Some((_, role)) => RoleRef { kind: "Role".into(), name: role.into() },
        None => RoleRef { kind: "ClusterRole".into(), name: role.into() },
    };
    let subject = |subject: &&str| {
        let (kind, name) = subject.split_once(':').unwrap_or_default();
        match (kind, name.split_once('/')) {
            ("account", Some((namespace, name))) => {
                Subject { kind: "ServiceAccount".into(), name: name.into(), namespace: namespace.into() }
            }
            ("group", _) => Subject { kind: "Group".into(), name: name.into(), namespace: String::new() },
            _ => Subject { kind: "User".into(), name: name.into(), namespace: String::new() },
        }
    };
    Binding {
        namespace: namespace.into(),
        name: name.into(),
        role,
        subjects: subjects.iter().map(subject).collect(),
    }
}

fn rule(words: &[&str]) -> Rule {
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let verbs = words.first().copied().unwrap_or_default();
    let verbs = list(VERBS.iter().find(|(short, _)| *short == verbs).map_or(verbs, |(_, verbs)| verbs));
    match words {
        [_, paths] => Rule { verbs, non_resource_urls: list(paths), ..Rule::default() },
        [_, resources, "in", groups, named @ ..] => {
            let groups = list(groups).into_iter();
            Rule {
                verbs,
                api_groups: groups.map(|group| if group == "core" { String::new() } else { group }).collect(),
                resources: list(resources),
                resource_names: named.get(1).map(|names| list(names)).unwrap_or_default(),
                ..Rule::default()
            }
        }
        _ => Rule::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let all = Bootstrap::new();
        let counts = (all.cluster_roles.len(), all.roles.len(), all.bindings.len());
        assert_eq!(counts, (69, 7, 57));
        let rules =
            all.cluster_roles.iter().map(|role| &role.rules).chain(all.roles.iter().map(|role| &role.rules));
        for rule in rules.flatten() {
            let is_about_resources = !rule.resources.is_empty() && !rule.api_groups.is_empty();
            assert!(!rule.verbs.is_empty(), "{rule}");
            assert!(is_about_resources == rule.non_resource_urls.is_empty(), "{rule}");
        }
        for binding in &all.bindings {
            let found = match binding.role.kind.as_str() {
                "Role" => all
                    .roles
                    .iter()
                    .any(|role| role.name == binding.role.name && role.namespace == binding.namespace),
                _ => all.cluster_roles.iter().any(|role| role.name == binding.role.name),
            };
            assert!(found, "{binding:?}");
            assert!(binding.subjects.iter().all(|subject| !subject.name.is_empty()), "{binding:?}");
        }
    }

    #[test]
    fn sums_have_the_rules_of_their_parts_and_of_parts_of_parts() {
        let all = Bootstrap::new();
        let rules = |name: &str| {
            all.cluster_roles.iter().find(|role| role.name == name).map(|role| role.rules.clone()).unwrap()
        };
        for (part, sum) in [("view", "edit"), ("edit", "admin"), ("system:aggregate-to-view", "admin")] {
            assert!(rules(part).iter().all(|rule| rules(sum).contains(rule)), "{part}");
        }
        assert!(!rules("view").is_empty());
    }
}
