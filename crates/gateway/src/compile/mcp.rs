//! McpRoutes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use watchkeeper_core::Key;

use super::ai::{ai_head, headers, reached};
use super::fields::Problems;
use super::{Compiler, Put};
use crate::ai::{McpGateway, McpServer, Seldom};
use crate::kinds::McpRouteSpec;
use crate::object::{Input, Problem};
use crate::table::{Action, PathPattern, Route, Rule};

/// Bytes that a request may carry if nobody said.
const BODY: usize = 1 << 20;

/// The name that the rule of an McpRoute has among routes. No GatewayRoute can have it.
fn route_key(key: &Key) -> Key {
    Key::new(key.namespace(), &format!("McpRoute:{}", key.name()))
}

impl Compiler {
    pub(super) fn put_mcp_route(&mut self, input: &Input) -> Result<Put, Vec<Problem>> {
        let key = &input.id.key;
        let spec: McpRouteSpec = input.checked()?;
        let (mut problems, mut put) = (Problems::default(), Put::default());
        let (mut secrets, mut servers, mut names) = (Vec::new(), Vec::new(), HashSet::new());
        for (at, wanted) in spec.servers.iter().enumerate() {
            let field = format!("spec.servers[{at}]");
            if !names.insert(wanted.name.clone()) {
                problems.add(format!("{field}.name"), "is there twice");
                continue;
            }
            let mut as_backend = json!({"url": wanted.url});
            if let Some(file) = &wanted.ca_file {
                as_backend["tls"] = json!({"caFile": file});
            }
            let timeout = Duration::from_secs(60);
            let timeout = problems.positive(&format!("{field}.timeout"), wanted.timeout.as_ref(), timeout);
            let shown = headers(&mut problems, &field, &wanted.headers);
            let around = (&mut put, &mut secrets);
            let credential = self.provider_key(&mut problems, &field, input, wanted.key.as_ref(), around);
            let learned = self.ai.learned_servers.entry((key.clone(), wanted.name.clone())).or_default();
            let base = &self.settings.base;
            if let Some(backend) = reached(&mut problems, &field, key, as_backend, learned, base) {
                servers.push(McpServer {
                    name: wanted.name.as_str().into(),
                    backend,
                    key: credential,
                    headers: shown,
                    tools: wanted.tools.clone().into(),
                    timeout,
                    failed: Seldom::default(),
                });
            }
        }
        let path = spec.path.as_deref().unwrap_or("/mcp");
        let path = problems.path("spec.path", path).unwrap_or_default();
        let named = route_key(key);
        let (head, hosts) =
            ai_head(self, &mut problems, input, named.clone(), (&spec.listeners, &spec.hosts));
        let gateway = McpGateway {
            key: key.clone(),
            servers: servers.into(),
            origins: spec.origins.clone().into(),
            max_body: spec.max_body_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(BODY),
        };
        let gateway = problems.finish(gateway)?;
        self.ai.learned_servers.retain(|(owner, name), _| owner != key || names.contains(name));
        self.ai.mcp_secret_users.set(key, secrets);
        let rule = Arc::new(Rule {
            route: Arc::clone(&head),
            index: (0, 0),
            path: PathPattern::Exact(path.into()),
            method: None,
            headers: Box::new([]),
            query: Box::new([]),
            action: Arc::new(Action { mcp: Some(key.clone()), ..Action::default() }),
        });
        let route = Arc::new(Route { rules: vec![rule].into(), hosts: hosts.into(), head });
        if let Some(before) = self.table.route(&named).cloned() {
            self.touch_doubles(&before);
        }
        self.table.put_route(Arc::clone(&route));
        self.touch_doubles(&route);
        Arc::make_mut(&mut self.table.ai).put_mcp(Arc::new(gateway));
        Ok(put)
    }

    pub(super) fn remove_mcp_route(&mut self, key: &Key) {
        self.ai.mcp_secret_users.set(key, Vec::new());
        self.ai.learned_servers.retain(|(owner, _), _| owner != key);
        let named = route_key(key);
        if let Some(route) = self.table.remove_route(&named) {
            self.touch_doubles(&route);
        }
        Arc::make_mut(&mut self.table.ai).remove_mcp(key);
    }
}
