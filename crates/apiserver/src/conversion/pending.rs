//! Conversions for steps that are pure.

use parking_lot::Mutex;
use serde_json::Value;

use super::Converter;
use crate::object::meta;
use crate::resource::Resource;

/// How often a step may find that it needs one more object in another version.
const ROUNDS: usize = 16;

/// Objects in other versions, for steps that cannot wait for a webhook. A step that needs one that is not here fails, and is done
/// [again](Converter::supply) when it is.
#[derive(Default)]
pub(crate) struct Conversions {
    known: Mutex<Vec<Known>>,
    missing: Mutex<Vec<(Value, String)>>,
}

struct Known {
    object: Value,
    to: String,
    converted: Result<Value, String>,
}

impl Conversions {
    /// An object in another version. The error says why there is none.
    pub(crate) fn get(&self, object: &Value, to: &str) -> Result<Value, String> {
        let known = self.known.lock();
        match known.iter().find(|known| known.to == to && known.object == *object) {
            Some(known) => known.converted.clone(),
            None => {
                self.missing.lock().push((object.clone(), to.to_owned()));
                Err("the object has yet to be converted".to_owned())
            }
        }
    }
}

impl Converter {
    /// Does a step, and does it again with the conversions that it found missing, until none is.
    pub(crate) async fn supply<T>(
        &self,
        resource: &Resource,
        conversions: &Conversions,
        mut step: impl FnMut() -> T,
    ) -> T {
        for _ in 0..ROUNDS {
            let outcome = step();
            let missing = std::mem::take(&mut *conversions.missing.lock());
            if missing.is_empty() {
                return outcome;
            }
            let crate::resource::Nature::Custom(installed, _) = &resource.nature else { return outcome };
            for (object, to) in missing {
                let mut converted = self.asked(installed, object.clone(), &to).await;
                if let Ok(converted) = &mut converted {
                    meta::copy(converted, &object, "resourceVersion");
                }
                let converted = converted.map_err(|failure| failure.message);
                conversions.known.lock().push(Known { object, to, converted });
            }
        }
        step()
    }
}
