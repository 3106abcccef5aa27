//! The least that a proxy on hyper can be: one backend, connections that are used again, and nothing else.

use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

use crate::Failed;

/// Connections to the backend that are free.
type Pool = Arc<Mutex<Vec<SendRequest<Incoming>>>>;

pub(crate) async fn serve(listen: &str, backend: &str) -> Result<(), Failed> {
    let listener = TcpListener::bind(listen).await?;
    let (pool, backend) = (Pool::default(), Arc::<str>::from(backend));
    loop {
        let (client, _) = listener.accept().await?;
        client.set_nodelay(true)?;
        let (pool, backend) = (Arc::clone(&pool), Arc::clone(&backend));
        let service = service_fn(move |request| pass(Arc::clone(&pool), Arc::clone(&backend), request));
        tokio::spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(client), service),
        );
    }
}

async fn pass(
    pool: Pool,
    backend: Arc<str>,
    request: Request<Incoming>,
) -> Result<Response<BoxBody<bytes::Bytes, hyper::Error>>, Failed> {
    let free = pool.lock().pop();
    let mut sender = match free.filter(SendRequest::is_ready) {
        Some(sender) => sender,
        None => {
            let stream = TcpStream::connect(&*backend).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            sender
        }
    };
    let response = sender.send_request(request).await?;
    // Free for the next as soon as its response has been read.
    tokio::spawn(async move {
        if sender.ready().await.is_ok() {
            pool.lock().push(sender);
        }
    });
    Ok(response.map(|body| body.boxed()))
}
