//! A server in this process, called without a socket.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Once};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use watchkeeper_apiserver::authentication::{Identity, Service};
use watchkeeper_apiserver::front::{Body, Response};
use watchkeeper_apiserver::{ApiServer, Error, Options};
use watchkeeper_storage::Memory;

use crate::{Answer, Broken, Request, Server};

/// How long an answer may take. The server itself gives up earlier.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Of a watch, how long nothing may come until it is left.
const SILENCE: Duration = Duration::from_millis(5);

/// A server in this process, asked by its administrator.
pub struct Local(ApiServer);

impl Local {
    /// Starts a server with nothing in it.
    pub async fn start() -> Result<Self, Error> {
        let storage = Arc::new(Memory::new(watchkeeper_storage::Options::default()));
        Ok(Self(ApiServer::start(storage, Options::default()).await?))
    }

    /// Ends it, and its tasks.
    pub async fn stop(&self) {
        self.0.stop().await;
    }

    async fn ask(&self, request: &Request) -> Answer {
        let mut builder = http::Request::builder().method(request.method.as_str()).uri(&request.target);
        for (name, value) in &request.headers {
            builder = builder.header(name, value.as_slice());
        }
        // What this cannot express, a socket cannot bring either: bytes that are no request are the matter of `octets`.
        let Ok(whole) = builder.body(Body::whole(request.body.clone())) else { return Answer::default() };
        let response = self.0.call(whole, Identity::admin()).await;
        read(response, request.is_watch()).await
    }
}

impl Server for Local {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Answer, Broken>> {
        Box::pin(async move {
            let answer = AssertUnwindSafe(self.ask(request)).catch_unwind();
            match tokio::time::timeout(TIMEOUT, answer).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(_)) => Err(Broken::Panic(panics().pop().unwrap_or_default())),
                Err(_) => Err(Broken::Silence(TIMEOUT)),
            }
        })
    }
}

async fn read(response: Response, is_watch: bool) -> Answer {
    let (parts, mut body) = response.into_parts();
    let content_type =
        parts.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut answer =
        Answer { code: parts.status.as_u16(), content_type: content_type.to_owned(), body: Vec::new() };
    loop {
        let frame = match is_watch {
            true => tokio::time::timeout(SILENCE, body.frame()).await.unwrap_or_default(),
            false => body.frame().await,
        };
        match frame {
            Some(Ok(frame)) => {
                answer.body.extend_from_slice(frame.data_ref().map_or(&[], |data| data.as_ref()));
            }
            _ => return answer,
        }
    }
}

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes the panics that there were in this process since the last call, those of tasks included. The first call begins to
/// collect them.
pub fn panics() -> Vec<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.lock().push(info.to_string());
            usual(info);
        }));
    });
    std::mem::take(&mut PANICS.lock())
}
