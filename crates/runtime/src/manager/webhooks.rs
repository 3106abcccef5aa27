//! Webhooks beside the controllers.

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use watchkeeper_client::Client;
use watchkeeper_connection::{Connection, Locality};
use watchkeeper_webhook::{
    AnyWebhook, PORT, Program, Reached, WebhookMetrics, WebhookOptions, WebhookServer, converted,
    converted_definition, described, rights,
};

use crate::health::Check;
use crate::manager::tasks::Task;
use crate::manager::{Manager, StartError};
use crate::metrics::Metrics;

/// The webhooks of a manager.
#[derive(Default)]
pub(super) struct Webhooks {
    pub(super) list: Vec<AnyWebhook>,
    pub(super) options: WebhookOptions,
}

impl Manager {
    /// Serves these webhooks: admission and conversion of a kind, as functions.
    ///
    /// They are served before anything is listed, since what is listed may have to be converted, and on every replica, whoever
    /// leads. Certificates and the configurations by which the API server knows of them are kept as they should be; `/readyz` says
    /// what is missing for them to be asked. When the program stops, they are served for some seconds after `/readyz` has begun to
    /// fail.
    ///
    /// In a cluster they are asked through the Service `NAME-webhook`, which `watchkeeper generate` makes. Beside an API server of this
    /// machine, and in tests, there is nothing to set up.
    #[must_use]
    pub fn webhook(mut self, webhook: impl Into<AnyWebhook>) -> Self {
        self.webhooks.list.push(webhook.into());
        self
    }

    /// Sets how webhooks are served, and with which certificates.
    #[must_use]
    pub fn webhook_options(mut self, options: WebhookOptions) -> Self {
        self.webhooks.options = options;
        self
    }

    /// Listens for reviews, and has the rest done by a task that runs before anything is listed.
    pub(super) fn serve_webhooks(
        &mut self,
        connection: &Connection,
        metrics: &Metrics,
    ) -> Result<(), StartError> {
        if self.webhooks.list.is_empty() {
            return Ok(());
        }
        let counted = WebhookMetrics::default();
        counted.register(&mut metrics.registry.lock());
        let names: Vec<Value> =
            self.about.definitions.iter().map(|definition| definition["metadata"]["name"].clone()).collect();
        let keeps = self.about.keeps_definitions;
        let installs = |name: &str| !keeps && names.iter().any(|own| own == name);
        let program = Program {
            name: &self.name,
            namespace: connection.default_namespace(),
            connection,
            installs: &installs,
            installed_by_others: keeps,
            supervisor: &metrics.supervisor,
        };
        let options = self.webhooks.options.clone();
        let server = WebhookServer::start(&self.webhooks.list, options, &program, &counted);
        let mut server = server.map_err(|error| StartError::Webhooks(error.to_string()))?;
        // Definitions with a conversion are applied with it, and not without.
        for name in converted(&self.webhooks.list) {
            let name = format!("definition {name}");
            self.before.retain(|task| task.name != name);
            self.checks.retain(|(check, _)| *check != name);
        }
        self.definitions.push(server.published());
        let check: Check = std::sync::Arc::new(server.check());
        self.checks.push(("webhooks".to_owned(), check));
        self.webhook_address = Some(server.address());
        self.webhook_stop = self.webhooks.options.stop_time(connection.locality());
        let serve = move |client: Client, stop: CancellationToken| async move {
            server.run(client.connection().clone(), stop).await;
            Ok(())
        };
        self.before.push(Task::once("webhooks".to_owned(), serve));
        Ok(())
    }

    /// Whether there are webhooks whose configurations the program keeps.
    pub(super) fn has_webhooks(&self) -> bool {
        !self.webhooks.list.is_empty() && self.webhooks.options.reached != Reached::Elsewhere
    }

    /// What the webhooks add to the description of the program.
    pub(super) fn describe_webhooks(&self, description: &mut watchkeeper_description::Description) {
        let list = &self.webhooks.list;
        if list.is_empty() {
            return;
        }
        description.webhooks = described(list);
        // They are served for a while after the reconciles have ended.
        description.grace_seconds = description
            .grace_seconds
            .saturating_add(self.webhooks.options.stop_time(Locality::Pod).as_secs());
        description.webhook_port = Some(match self.webhooks.options.address {
            Some(address) if address.port() != 0 => address.port(),
            _ => PORT,
        });
        if self.about.has_options {
            let arguments = ["--webhook-configurations=false", "--webhook-cert-dir={folder}"];
            description.webhook_arguments = arguments.map(str::to_owned).into();
        }
        // Where it is going to run is said by whoever installs it.
        for definition in &mut description.definitions {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            if let Some(whole) = converted_definition(list, &self.name, "default", name) {
                *definition = whole;
            }
        }
        let metric = |(name, kind, help): &(&str, &str, &str)| watchkeeper_description::Metric {
            name: (*name).to_owned(),
            kind: (*kind).to_owned(),
            help: (*help).to_owned(),
        };
        description.metrics.extend(watchkeeper_webhook::METRICS.iter().map(metric));
    }

    /// What the webhooks ask of a cluster.
    pub(super) fn webhook_rights(&self) -> Vec<watchkeeper_description::Right> {
        match self.webhooks.options.reached {
            Reached::Elsewhere => Vec::new(),
            _ => rights(&self.webhooks.list, &self.name),
        }
    }
}
