//! A request, once its author and its options are known.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::Instant;

use crate::audit::Annotations;
use crate::authentication::Identity;
use crate::request::delete_options::DeleteOptions;
use crate::request::media;
use crate::request::query::Query;
use crate::request::write_options::WriteOptions;
use crate::status_error::StatusError;
use crate::write::{Author, WriteContext};

/// A request, read as far as every handler needs it. What it asks for is not here: that is an [`Action`].
pub(crate) struct Call {
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    /// Who sent it, or on whose behalf it was sent.
    pub(crate) identity: Arc<Identity>,
    pub(crate) pretty: bool,
    pub(crate) body: Bytes,
    /// When it has to be answered, unless it may take for ever.
    pub(crate) deadline: Option<Instant>,
    /// What is said about it besides its answer.
    pub(crate) annotations: Annotations,
}

impl Call {
    pub(crate) fn new(headers: HeaderMap, query: Query, identity: Identity) -> Self {
        let pretty = media::pretty(&headers, &query);
        let (identity, annotations) = (Arc::new(identity), Annotations::of_request());
        Self { headers, query, identity, pretty, body: Bytes::new(), deadline: None, annotations }
    }

    pub(crate) fn delete_options(&self) -> Result<DeleteOptions, StatusError> {
        if self.body.is_empty() {
            return Ok(DeleteOptions::read(&self.query, None)?);
        }
        let options = crate::write::decode(&self.body, media::body_format(&self.headers, true)?)?;
        Ok(DeleteOptions::read(&self.query, Some(&options))?)
    }

    fn user_agent(&self) -> &str {
        self.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Options and author of a write.
    pub(crate) fn context(&self, options: &WriteOptions) -> WriteContext {
        let agent = self.user_agent().split('/').next().unwrap_or_default();
        let manager = if options.field_manager.is_empty() { agent } else { &options.field_manager };
        WriteContext {
            dry_run: options.dry_run,
            manager: manager.chars().take(128).collect(),
            names_manager: !options.field_manager.is_empty(),
            field_validation: options.field_validation,
            author: Author::Client(Arc::clone(&self.identity)),
            of_collection: false,
            deadline: self.deadline,
            annotations: self.annotations.clone(),
        }
    }

    /// The same for a deletion.
    pub(crate) fn delete_context(&self, options: &DeleteOptions) -> WriteContext {
        let options = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
        self.context(&options)
    }
}
