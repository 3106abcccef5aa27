use std::collections::HashMap;

/// The facts of `data/fields.txt` and `data/defaults.txt`.
#[derive(Default)]
pub(crate) struct Facts {
    of: HashMap<(String, String), Vec<String>>,
    defaults: HashMap<(String, String), String>,
}

impl Facts {
    /// Sections are definitions, lines are a field and its facts.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut facts = Self::default();
        for (definition, line) in lines(text) {
            let (field, words) = line.split_once(' ').ok_or_else(|| format!("no fact: {line}"))?;
            let key = (definition.to_owned(), field.to_owned());
            for word in words.split(' ') {
                if let Some(default) = word.strip_prefix("default=") {
                    facts.defaults.insert(key.clone(), default.to_owned());
                }
                facts.of.entry(key.clone()).or_default().push(word.to_owned());
            }
        }
        Ok(facts)
    }

    /// Lines are a field and the JSON it becomes when it is absent; they fill objects, but are not published.
    pub(crate) fn add_defaults(&mut self, text: &str) -> Result<(), String> {
        for (definition, line) in lines(text) {
            let (field, default) = line.split_once(' ').ok_or_else(|| format!("no default: {line}"))?;
            self.defaults.insert((definition.to_owned(), field.to_owned()), default.to_owned());
        }
        Ok(())
    }

    pub(crate) fn of(&self, definition: &str, field: &str) -> &[String] {
        self.of.get(&(definition.to_owned(), field.to_owned())).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn filling(&self, definition: &str, field: &str) -> Option<&str> {
        self.defaults.get(&(definition.to_owned(), field.to_owned())).map(String::as_str)
    }
}

/// Lines with the section they stand in; comments and empty lines are left out.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut section = "";
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
            return None;
        }
        Some((section, line))
    })
}
