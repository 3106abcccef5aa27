//! Stands between a client and a server, and can have the version that the client has seen expire: its watch ends, and when it
//! asks for what came after, that is gone (410). So it lists anew, whoever it is and whichever server is behind.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use memchr::memmem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use watchkeeper_bench_target::{Access, Ask, Connection, Error, Result};

/// What ends a list that comes as a watch, in JSON and in protobuf alike.
const END: &[u8] = b"k8s.io/initial-events-end";
/// Whoever has not listed again after this time will not: back-offs are shorter.
const TIMEOUT: Duration = Duration::from_secs(120);
const GONE: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}"#;

type Body = UnsyncBoxBody<Bytes, Error>;

/// A proxy that runs, ended when it is dropped. It speaks plain HTTP.
pub(crate) struct Proxy {
    state: Arc<State>,
    accepting: AbortHandle,
    kubeconfig: PathBuf,
    _directory: TempDir,
}

struct State {
    access: Arc<Access>,
    /// The next watch that goes on from a version is told that it is gone.
    expired: AtomicBool,
    /// Watches of an older generation end.
    generation: watch::Sender<u64>,
    /// How many lists have come through.
    lists: watch::Sender<u64>,
}

impl Proxy {
    /// Stands before a server from now on.
    pub(crate) async fn start(access: &Arc<Access>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let directory = tempfile::tempdir()?;
        let kubeconfig = directory.path().join("kubeconfig");
        let server = format!("http://{}", listener.local_addr()?);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: proxy\nclusters: [{{name: proxy, cluster: {{server: \"{server}\"}}}}]\n\
             users: [{{name: nobody, user: {{}}}}]\ncontexts: [{{name: proxy, context: {{cluster: proxy, user: nobody}}}}]\n"
        );
        std::fs::write(&kubeconfig, text)?;
        let state = Arc::new(State {
            access: Arc::clone(access),
            expired: AtomicBool::new(false),
            generation: watch::Sender::new(0),
            lists: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state))).abort_handle();
        Ok(Self { state, accepting, kubeconfig, _directory: directory })
    }

    /// For its clients.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Has the version expire, and waits until everything came through again.
    pub(crate) async fn expire(&self) -> Result<()> {
        let mut lists = self.state.lists.subscribe();
        let before = *lists.borrow_and_update();
        self.state.expired.store(true, SeqCst);
        self.state.generation.send_modify(|generation| *generation += 1);
        timeout(TIMEOUT, lists.wait_for(|lists| *lists > before))
            .await
            .map_err(|_| "nothing was listed again")??;
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| pass(Arc::clone(&state), request));
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(connection);
    }
}

async fn pass(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Body>> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let is =
        |name: &str| [format!("{name}=true"), format!("{name}=1")].iter().any(|word| path.contains(word));
    let (watch, initial) = (is("watch"), is("sendInitialEvents"));
    if watch && !initial {
        if state.expired.swap(false, SeqCst) {
            let body = Full::new(Bytes::from(GONE)).map_err(|never| match never {}).boxed_unsync();
            let answer =
                Response::builder().status(StatusCode::GONE).header(CONTENT_TYPE, "application/json");
            return Ok(answer.body(body)?);
        }
        // Whoever goes on has listed before.
        state.lists.send_modify(|lists| *lists += 1);
    }
    let accept =
        request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("*/*").to_owned();
    drop(request);
    let mut connection = Connection::http2(&state.access).await?;
    let answer = connection.send(Ask { accept: &accept, ..Ask::get(&path) }).await?;
    let (head, body) = answer.into_parts();
    let mut response = Response::builder().status(head.status);
    if let Some(kind) = head.headers.get(CONTENT_TYPE) {
        response = response.header(CONTENT_TYPE, kind);
    }
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        let _connection = connection;
        forward(&state, body, &sender, watch).await;
    });
    let frames =
        futures_util::stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
    Ok(response.body(StreamBody::new(frames.boxed()).boxed_unsync())?)
}

/// Hands on what comes, until it ends or, if it is a watch, expires.
async fn forward(state: &State, mut body: Incoming, to: &mpsc::Sender<Result<Frame<Bytes>>>, watch: bool) {
    let mut generation = state.generation.subscribe();
    let mut tail = Vec::new();
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            _ = generation.changed(), if watch => return,
        };
        let Some(Ok(frame)) = frame else { return };
        let Ok(data) = frame.into_data() else { continue };
        let ended = watch && found(&mut tail, &data);
        if to.send(Ok(Frame::data(data))).await.is_err() {
            return;
        }
        if ended {
            state.lists.send_modify(|lists| *lists += 1);
        }
    }
}

/// Whether the end of a list is in what came last; it may have begun in what came before.
fn found(tail: &mut Vec<u8>, data: &[u8]) -> bool {
    tail.extend_from_slice(&data[..data.len().min(END.len())]);
    let found = memmem::find(tail, END).is_some() || memmem::find(data, END).is_some();
    let seen = if data.len() < END.len() { std::mem::take(tail) } else { data.to_vec() };
    *tail = if found { Vec::new() } else { seen[seen.len().saturating_sub(END.len() - 1)..].to_vec() };
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use watchkeeper_informer::Informer;
    use watchkeeper_sources::kubernetes::{Connection, Kubernetes};
    use watchkeeper_testkit::TestEnv;

    use super::*;

    #[tokio::test]
    async fn a_client_whose_version_has_expired_lists_everything_again() {
        let env = TestEnv::builder().listening().start().await;
        let access = Access::of(&std::fs::read(env.kubeconfig()).unwrap()).unwrap();
        let proxy = Proxy::start(&Arc::new(access)).await.unwrap();
        let connection = Connection::from_kubeconfig(proxy.kubeconfig(), None).await.unwrap();
        let source = Kubernetes::of::<ConfigMap>(connection);
        let informer = Informer::<ConfigMap>::builder().start(source);
        informer.synced().await.unwrap();
        assert_eq!(*proxy.state.lists.borrow(), 1);
        proxy.expire().await.unwrap();
        assert_eq!(*proxy.state.lists.borrow(), 2);
        assert!(!proxy.state.expired.load(SeqCst), "the client was not told");
    }

    #[test]
    fn the_end_of_a_list_is_found_wherever_it_is_cut_and_once() {
        let text = [&b"{\"annotations\":{\""[..], END, b"\":\"true\"}}"].concat();
        for first in 0..text.len() {
            for second in first..text.len() {
                let mut tail = Vec::new();
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                let count = pieces.into_iter().filter(|piece| found(&mut tail, piece)).count();
                assert_eq!(count, 1, "cut at {first} and {second}");
            }
        }
        assert!(!found(&mut Vec::new(), b"k8s.io/initial-events"));
    }
}
