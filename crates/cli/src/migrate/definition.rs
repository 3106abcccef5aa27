//! The definition of the resource that is migrated.

use serde_json::{Value, json};
use watchkeeper_connection::Connection;

use super::{call, refusal};
use crate::failure::Failure;

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How often the status is written if others change the definition meanwhile.
const ATTEMPTS: usize = 10;

/// A CustomResourceDefinition, as it was when the migration began.
pub(super) struct Definition(Value);

impl Definition {
    #[cfg(test)]
    pub(super) fn of(definition: Value) -> Self {
        Self(definition)
    }

    /// The definition with this name, in full or by any of the names of its resource.
    pub(super) async fn find(connection: &Connection, word: &str) -> Result<Self, Failure> {
        let (code, list) = call(connection, "GET", PATH, "application/json", String::new()).await?;
        if code != 200 {
            let why = refusal(code, &list);
            return Err(Failure::running(format!("the definitions of the server cannot be read: {why}")));
        }
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let mut found: Vec<Self> = items.into_iter().map(Self).filter(|one| one.is_called(word)).collect();
        let names: Vec<String> = found.iter().map(|one| one.name().to_owned()).collect();
        match (found.pop(), names.as_slice()) {
            (Some(definition), [_]) => Ok(definition),
            (None, _) => Err(Failure::input(format!(
                "the server has no custom resource called {word:?}; built-in kinds are not migrated"
            ))),
            (Some(_), several) => Err(Failure::input(format!(
                "{word:?} may be each of these, name one: {}",
                several.join(", ")
            ))),
        }
    }

    fn is_called(&self, word: &str) -> bool {
        let names = &self.0["spec"]["names"];
        let is = |name: &Value| name.as_str().is_some_and(|name| name.eq_ignore_ascii_case(word));
        let short = names["shortNames"].as_array().into_iter().flatten();
        self.name() == word
            || [&names["plural"], &names["singular"], &names["kind"]].into_iter().chain(short).any(is)
    }

    pub(super) fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(super) fn uid(&self) -> &str {
        self.0["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// A number that grows whenever the definition is changed.
    pub(super) fn generation(&self) -> i64 {
        self.0["metadata"]["generation"].as_i64().unwrap_or_default()
    }

    /// The version in which objects are stored.
    pub(super) fn storage(&self) -> &str {
        let mut versions = self.0["spec"]["versions"].as_array().into_iter().flatten();
        let storage = versions.find(|version| version["storage"] == true);
        storage.and_then(|version| version["name"].as_str()).unwrap_or_default()
    }

    /// The versions in which objects may be stored.
    pub(super) fn stored(&self) -> Vec<&str> {
        let stored = self.0["status"]["storedVersions"].as_array().into_iter().flatten();
        stored.filter_map(Value::as_str).collect()
    }

    /// The path of the collection in all namespaces, in a version that is served: the storage version if it is.
    pub(super) fn collection(&self) -> Result<String, Failure> {
        let spec = &self.0["spec"];
        let versions = spec["versions"].as_array().into_iter().flatten();
        let mut served: Vec<&Value> = versions.filter(|version| version["served"] == true).collect();
        served.sort_by_key(|version| version["storage"] != true);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match served.first() {
            Some(version) => Ok(format!("/apis/{}/{}", text(&spec["group"]), text(&version["name"]))),
            None => Err(Failure::running(format!("{}: no version is served", self.name()))),
        }
    }

    pub(super) fn plural(&self) -> &str {
        self.0["spec"]["names"]["plural"].as_str().unwrap_or_default()
    }

    /// Says in the status that no other version than the storage version is stored. Returns those that are dropped.
    ///
    /// # Errors
    ///
    /// If the definition was changed since: another version may have been stored meanwhile.
    pub(super) async fn forget_others(&self, connection: &Connection) -> Result<Vec<String>, Failure> {
        let (path, storage) = (format!("{PATH}/{}", self.name()), self.storage());
        for _ in 0..ATTEMPTS {
            let (code, body) = call(connection, "GET", &path, "application/json", String::new()).await?;
            if code != 200 {
                return Err(Failure::running(refusal(code, &body)));
            }
            let mut now = Self(body);
            if now.uid() != self.uid() || now.storage() != storage {
                return Err(Failure::running(format!(
                    "{}: its storage version is {} now and was {storage}: run the command again",
                    self.name(),
                    now.storage()
                )));
            }
            if now.generation() != self.generation() {
                return Err(Failure::running(format!(
                    "{}: the definition was changed meanwhile (generation {}, was {}), so that another version may have been stored: run \
                     the command again",
                    self.name(),
                    now.generation(),
                    self.generation()
                )));
            }
            let dropped: Vec<String> =
                now.stored().into_iter().filter(|version| *version != storage).map(str::to_owned).collect();
            now.0["status"]["storedVersions"] = json!([storage]);
            let status = format!("{path}/status");
            let (code, body) =
                call(connection, "PUT", &status, "application/json", now.0.to_string()).await?;
            match code {
                200 => return Ok(dropped),
                409 => {}
                code => return Err(Failure::running(refusal(code, &body))),
            }
        }
        Err(Failure::running(format!(
            "{}: others change it all the time; run the command again",
            self.name()
        )))
    }
}
