//! What an AI gateway knows of language models, without any I/O.
//!
//! A [`Dialect`] is the form in which a vendor writes requests, responses, event streams and errors. Requests and responses are translated by way
//! of one small form, [`ChatRequest`] and [`ChatResponse`], event streams by way of [`Event`]; so a dialect is written once, not once for every
//! other.
//!
//! | promise | where |
//! |---|---|
//! | bytes of the same dialect are not written anew: one field is replaced in place | [`envelope`] |
//! | an error has the form of the client's dialect | [`ApiError`] |
//! | a budget is reserved before a call, settled after it, and kept if nobody knows what was used | [`Ledger`] |
//! | what strangers send is bounded in size and depth | [`sse`], [`envelope`], [`template`], [`expression`] |

mod anthropic;
pub mod budget;
mod chat;
mod dialect;
mod embeddings;
pub mod envelope;
mod error;
mod estimate;
mod event;
pub mod expression;
mod gemini;
mod json;
pub mod lease;
pub mod mcp;
mod money;
mod observer;
mod openai;
mod order;
mod responses;
pub mod sse;
mod tally;
pub mod template;
mod texts;
mod translate;
mod usage;

pub use budget::{Amounts, Exceeded, Ledger, Limit, Period, Reservation, Shortage, Unit};
pub use chat::{
    ChatRequest, ChatResponse, Format, Image, Message, Part, Role, Stop, Tool, ToolCall, ToolChoice,
    ToolResult,
};
pub use dialect::{Dialect, Stamp};
pub use embeddings::{EmbeddingRequest, EmbeddingResponse};
pub use error::{ApiError, ErrorKind};
pub use estimate::tokens_of;
pub use event::Event;
pub use expression::Expression;
pub use money::{Money, Prices};
pub use observer::Observer;
pub use order::Order;
pub use tally::Tally;
pub use template::Template;
pub use texts::{StreamText, StreamTexts};
pub use translate::{Decoder, Encoder};
pub use usage::Usage;
