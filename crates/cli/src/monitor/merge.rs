use std::collections::HashMap;

/// A family of metrics: what is said about it, and its samples.
#[derive(Default)]
struct Family {
    name: String,
    about: Vec<String>,
    samples: String,
}

/// Makes one page of metrics of several. Each sample has the label `program` with the name of its page; what is said about a family is said once,
/// in the words of the first page that has it.
pub(crate) fn merged<'a>(pages: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut families: Vec<Family> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (program, page) in pages {
        let mut current = None;
        // The families that this page is the first to speak of.
        let mut own: Vec<usize> = Vec::new();
        for line in page.lines().filter(|line| !line.is_empty() && *line != "# EOF") {
            match line.strip_prefix("# ") {
                Some(about) => {
                    let Some(name) = about.split(' ').nth(1) else { continue };
                    let at = *known.entry(name.to_owned()).or_insert_with(|| {
                        families.push(Family { name: name.to_owned(), ..Family::default() });
                        own.push(families.len() - 1);
                        families.len() - 1
                    });
                    current = Some(at);
                    if own.contains(&at) {
                        families[at].about.push(line.to_owned());
                    }
                }
                None => {
                    let Some(family) = current.and_then(|at: usize| families.get_mut(at)) else { continue };
                    family.samples.push_str(&labelled(line, program));
                }
            }
        }
    }
    let mut text = String::new();
    for family in families.iter().filter(|family| !family.name.is_empty()) {
        for line in &family.about {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(&family.samples);
    }
    text.push_str("# EOF\n");
    text
}

/// A sample with one label more.
fn labelled(line: &str, program: &str) -> String {
    let end = line.find(['{', ' ']).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    match rest.strip_prefix('{') {
        Some(rest) if rest.starts_with('}') => format!("{name}{{program=\"{program}\"{rest}\n"),
        Some(rest) => format!("{name}{{program=\"{program}\",{rest}\n"),
        None => format!("{name}{{program=\"{program}\"}}{rest}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_several_pages_are_told_once_with_the_samples_of_all() {
        let one = "# HELP a First.\n# TYPE a counter\na_total{x=\"1\"} 2\n# TYPE b gauge\nb 3\n# EOF\n";
        let other = "# HELP c Third.\n# TYPE c gauge\nc{} 1\n# HELP a Again.\n# TYPE a counter\na_total{x=\"2\"} 5\n# EOF\n";
        let text = merged([("p", one.to_owned()), ("q", other.to_owned())]);
        assert_eq!(
            text,
            "# HELP a First.\n# TYPE a counter\na_total{program=\"p\",x=\"1\"} 2\na_total{program=\"q\",x=\"2\"} 5\n\
             # TYPE b gauge\nb{program=\"p\"} 3\n# HELP c Third.\n# TYPE c gauge\nc{program=\"q\"} 1\n# EOF\n"
        );
    }
}
