//! Webhooks as functions over typed objects: admission and conversion, next to the controllers of a program.
//!
//! A [`Webhook`] says what is done with objects of a kind: defaults, a [`Verdict`], conversion from and to other versions. A manager of
//! `watchkeeper-runtime` serves them; [`WebhookServer`] is what it does that with.
//!
//! - **Functions know nothing of reviews.** They are given objects as Rust types, and may be called in a unit test.
//! - **Certificates look after themselves** ([`Certificates::Own`]): a Secret has an authority, each replica signs a certificate for itself,
//!   configurations get the bundle. All of it is replaced in time, in an order in which no request fails.
//! - **On the laptop** ([`Reached::Automatically`]) webhooks are asked at a loopback address, without anything to set up.
//!
//! # What it promises
//!
//! - A review is answered in bounded time and memory, also if the function panics or hangs; the verdict says so then.
//! - Whoever sends something else than a review is refused and counted. Clients are not authenticated: a webhook tells nobody anything
//!   that they did not send, and does nothing.
//! - Readiness means that the own certificate verifies by what every configuration shows.
//! - When the program stops, reviews are answered for some seconds more, and those that run to their end.
//!
//! # The way of a review
//!
//! `service` takes it from a request, within limits; `admission` or `conversion` make objects of it, call the function and make an answer of
//! what it says. `configuration` is what an API server is told, `certificates` keeps that and the certificates as they should be, `server`
//! has it all.

mod admission;
mod api;
mod certificates;
mod configuration;
mod conversion;
mod describe;
mod malformed;
mod metrics;
mod nearby;
mod options;
mod server;
mod service;
mod webhook;

pub use admission::{
    AdmissionRequest, Answer, GroupVersionKind, GroupVersionResource, Operation, UserInfo, Verdict,
};
pub use certificates::Rotation;
pub use describe::{converted, converted_definition, described, rights};
pub use metrics::{METRICS, WebhookMetrics};
pub use options::{Certificates, PORT, Reached, WebhookOptions, secret_name, service_name};
pub use server::{Program, ServeError, WebhookServer};
pub use webhook::{AnyWebhook, FailurePolicy, Webhook};
