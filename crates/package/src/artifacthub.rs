//! What Artifact Hub reads from a repository of charts.

use serde_json::json;

use crate::Renderer;
use crate::error::Error;
use crate::file::File;
use crate::operator::Operator;

pub(crate) const RENDERER: Renderer = Renderer {
    name: "artifacthub",
    about: "what Artifact Hub reads about a repository of charts",
    owns: &[],
    render,
};

fn render(operator: &Operator<'_>) -> Result<Vec<File>, Error> {
    let owners: Vec<_> = operator.settings.authors.iter().map(|author| person(author)).collect();
    let mut value = json!({"repositoryID": ""});
    if !owners.is_empty() {
        value["owners"] = json!(owners);
    }
    let text = watchkeeper_schema::yaml::encode(&value);
    let header = "# Artifact Hub reads this beside the index of your charts. repositoryID is what it shows once you have added the repository.\n";
    Ok(vec![File::once("artifacthub-repo.yml", format!("{header}{text}"))])
}

/// `Name <mail>` as an object.
pub(crate) fn person(author: &str) -> serde_json::Value {
    match author.split_once('<') {
        Some((name, mail)) => json!({"name": name.trim(), "email": mail.trim_end_matches('>').trim()}),
        None => json!({"name": author.trim()}),
    }
}
