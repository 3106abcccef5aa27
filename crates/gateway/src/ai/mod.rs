//! Calls of language models: one API for many providers.
//!
//! A rule of the table may have an [`AiGateway`] for an action. The way of a call: `endpoint` says what is asked in which dialect; the key of the client is
//! found in the [`AiTable`], and with it the model; what it may cost is reserved of budgets (`call`); providers are tried until one begins to
//! answer (`attempt`); the answer is passed on as it is, or translated (`relay`); what was used is settled, recorded and counted.
//!
//! | promise | where |
//! |---|---|
//! | no call is made that a limit does not allow, and none is forgotten | `call` |
//! | the client sees no error that another provider can make up for, as long as it has seen nothing else | `attempt` |
//! | bytes of the client's own dialect are passed on as they are, when they come | `relay` |
//! | nothing of keys, prompts and answers is in logs, records, metrics and errors | `records`, [`watchkeeper_ai::ApiError`] |

mod attempt;
mod cache;
mod call;
mod clock;
mod cluster_store;
mod content;
mod database_store;
mod database_writer;
mod endpoint;
mod guard;
mod key;
mod mcp;
mod models;
mod prompt;
mod provider_key;
mod record_table;
pub mod records;
mod relay;
mod seldom;
mod serve;
mod share;
mod spent;
mod stats;
mod table;
mod watch;
mod webhook;

pub use cache::Cache;
pub(crate) use call::{Revocation, Shared};
pub(crate) use clock::now;
pub(crate) use cluster_store::ClusterStore;
pub use content::ContentLog;
pub(crate) use database_store::DatabaseStore;
pub(crate) use key::given_key;
pub use key::new_key;
pub(crate) use mcp::{AskedTools, serve_tools};
pub use mcp::{McpGateway, McpServer};
pub(crate) use prompt::TEXT;
pub use prompt::{Input, Prompt};
pub use provider_key::ProviderKey;
pub use record_table::RecordTable;
pub use seldom::Seldom;
pub(crate) use serve::{Asked, refused, serve};
pub(crate) use share::Share;
pub(crate) use spent::ask as ask_spent;
pub(crate) use stats::METRICS;
pub(crate) use table::limits_cost;
pub use table::{
    AiGateway, AiKey, AiPolicy, AiTable, Guard, Look, Model, Provider, Retry, Split, Target, Tenant, Timeouts,
};
pub use webhook::Webhook;
