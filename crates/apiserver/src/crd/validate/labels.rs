//! The rules for names, as lists of messages.

/// What is wrong with a name that must be a DNS label (RFC 1035): it starts with a letter.
pub(super) fn dns_1035_problems(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 63);
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = name.bytes().all(inner)
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-');
    if !is_label {
        problems.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .into(),
        );
    }
    problems
}

/// What is wrong with a name that must be a DNS subdomain (RFC 1123).
pub(super) fn dns_subdomain_problems(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 253);
    // The length of names is counted in what is called characters, that of label keys in bytes.
    let others = watchkeeper_schema::metadata::dns_subdomain_problems(name).into_iter();
    problems.extend(others.filter(|problem| !problem.starts_with("must be no more than")));
    problems
}

fn too_long(name: &str, limit: usize) -> Vec<String> {
    let problem = (name.len() > limit).then(|| format!("must be no more than {limit} characters"));
    problem.into_iter().collect()
}
