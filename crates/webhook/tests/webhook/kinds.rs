//! A kind in two versions: a field was renamed, and one was restructured.
#![allow(unreachable_pub, reason = "what is derived is as public as the spec")]

use std::collections::BTreeMap;

pub(crate) mod v1 {
    use super::*;

    #[watchkeeper::kind(
        group = "example.com",
        version = "v1",
        kind = "App",
        namespaced,
        status = "AppStatus"
    )]
    #[derive(PartialEq)]
    pub struct AppSpec {
        /// How many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<i32>,
        /// `host:port`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(regex(pattern = r"^[a-z]+:[1-9][0-9]{0,3}$"))]
        pub address: Option<String>,
        /// Its environment.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub env: BTreeMap<String, String>,
    }

    /// How it goes.
    #[watchkeeper::schema]
    #[derive(PartialEq, Default)]
    pub struct AppStatus {
        /// How many are ready.
        #[serde(default)]
        pub ready: i32,
    }
}

pub(crate) mod v2 {
    use super::*;

    #[watchkeeper::kind(
        group = "example.com",
        version = "v2",
        kind = "App",
        namespaced,
        status = "AppStatus"
    )]
    #[derive(PartialEq)]
    pub struct AppSpec {
        /// How many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub replicas: Option<i32>,
        /// Where it listens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub address: Option<Address>,
        /// Its environment.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub env: BTreeMap<String, String>,
    }

    /// Where it listens.
    #[watchkeeper::schema]
    #[derive(PartialEq)]
    pub struct Address {
        /// The host.
        #[schemars(regex(pattern = r"^[a-z]+$"))]
        pub host: String,
        /// The port.
        #[schemars(range(min = 1, max = 9999))]
        pub port: i32,
    }

    pub use super::v1::AppStatus;
}

impl From<v1::App> for v2::App {
    fn from(app: v1::App) -> Self {
        let address = app.spec.address.as_deref().and_then(|address| {
            let (host, port) = address.split_once(':')?;
            Some(v2::Address { host: host.to_owned(), port: port.parse().ok()? })
        });
        let spec = v2::AppSpec { replicas: app.spec.size, address, env: app.spec.env };
        v2::App { metadata: app.metadata, spec, status: app.status }
    }
}

impl From<v2::App> for v1::App {
    fn from(app: v2::App) -> Self {
        let address = app.spec.address.map(|v2::Address { host, port }| format!("{host}:{port}"));
        let spec = v1::AppSpec { size: app.spec.replicas, address, env: app.spec.env };
        v1::App { metadata: app.metadata, spec, status: app.status }
    }
}

#[test]
fn the_versions_say_the_same() {
    watchkeeper_testkit::round_trips::<v2::App, v1::App>();
}

#[test]
#[should_panic(expected = "does not survive the way from example.com/v1 to example.com/v3 and back")]
fn a_version_that_loses_something_is_found() {
    #[watchkeeper::kind(group = "example.com", version = "v3", kind = "App", namespaced)]
    pub struct LossySpec {
        #[serde(default)]
        pub many: bool,
    }
    impl From<v1::App> for App {
        fn from(app: v1::App) -> Self {
            App { metadata: app.metadata, spec: LossySpec { many: app.spec.size > Some(1) } }
        }
    }
    impl From<App> for v1::App {
        fn from(app: App) -> Self {
            let size = app.spec.many.then_some(2);
            let spec = v1::AppSpec { size, address: None, env: BTreeMap::new() };
            v1::App { metadata: app.metadata, spec, status: None }
        }
    }
    watchkeeper_testkit::round_trips::<App, v1::App>();
}
