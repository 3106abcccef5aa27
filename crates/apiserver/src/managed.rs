//! Who manages which fields.

use serde_json::Value;

use crate::failure::Failure;
use crate::resource::Resource;
use crate::server::Server;
use crate::write::{Manner, Part, Place};

impl Server {
    /// Records who made an object.
    pub(crate) fn manage_created(&self, _: &Resource, _: &mut Value, _: &Manner) -> Result<(), Failure> {
        Ok(())
    }

    /// Records who changed an object.
    pub(crate) fn manage_updated(
        &self,
        _: &Place,
        _: Part,
        _: &mut Value,
        _: &Value,
        _: &Manner,
    ) -> Result<(), Failure> {
        Ok(())
    }
}
