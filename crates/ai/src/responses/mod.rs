//! Responses of OpenAI: clients may speak it. What the vendor keeps between calls (`previous_response_id`, files, its own tools) cannot be translated.

mod request;
mod response;
mod stream;

pub(crate) use request::read_request;
pub(crate) use response::write_response;
pub(crate) use stream::Encoder;
