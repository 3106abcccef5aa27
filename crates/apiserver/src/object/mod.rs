//! Objects as JSON: their metadata, their stored form, their times.

pub(crate) mod meta;
pub(crate) mod order;
pub(crate) mod random;
pub(crate) mod record;
pub(crate) mod time;
