//! Requests at a fixed rate, whether answers come or not, as long as fewer than 64 are under way: what a slow answer delays is the next request of a
//! closed loop, and that nobody measures. With 64 under way, the next ones wait, and the time that they wait is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::Failed;

/// The size of the bodies of requests.
const BODY: usize = 1_000;
/// How many requests are under way at a time. The time that the others wait here is part of what is measured. A gateway that cannot keep up with the
/// rate is not flooded with connections besides.
const AT_A_TIME: usize = 64;

type Sender = SendRequest<Full<bytes::Bytes>>;

/// Sends, and prints `RESULT requests errors p50 p99 slowest`, in microseconds from when a request was due. With a rate of 0, as many as
/// there are answers to, from when a request was begun.
pub(crate) async fn load(address: &str, path: &str, rate: u64, seconds: u64) -> Result<(), Failed> {
    let pool = Arc::<Mutex<Vec<Sender>>>::default();
    let (times, errors) = (Arc::<Mutex<Vec<u64>>>::default(), Arc::new(AtomicUsize::new(0)));
    let (due, mut beginning) = mpsc::unbounded_channel();
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    // A thread of its own: timers of the runtime are a millisecond wide.
    std::thread::spawn(move || {
        let begin = Instant::now() + Duration::from_millis(10);
        for number in 0..rate * seconds {
            let at = begin + Duration::from_nanos(number * 1_000_000_000 / rate.max(1));
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if due.send(at).is_err() {
                return;
            }
        }
    });
    let mut tasks = JoinSet::new();
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        let at = match rate {
            0 if Instant::now() < end => Instant::now(),
            0 => break,
            _ => match beginning.recv().await {
                Some(at) => at,
                None => break,
            },
        };
        while tasks.try_join_next().is_some() {}
        let place = Arc::clone(&places).acquire_owned().await?;
        let (pool, times, errors) = (Arc::clone(&pool), Arc::clone(&times), Arc::clone(&errors));
        let (address, path) = (address.to_owned(), path.to_owned());
        tasks.spawn(async move {
            let _place = place;
            match ask(&pool, &address, &path).await {
                Ok(()) => times.lock().push(u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX)),
                Err(_) => drop(errors.fetch_add(1, Relaxed)),
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    let mut times = std::mem::take(&mut *times.lock());
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).or(times.last()).copied().unwrap_or(0);
    println!("RESULT {} {} {} {} {}", times.len(), errors.load(Relaxed), at(50), at(99), at(100));
    Ok(())
}

async fn ask(pool: &Mutex<Vec<Sender>>, address: &str, path: &str) -> Result<(), Failed> {
    let free = pool.lock().pop();
    let mut sender = match free.filter(|sender| !sender.is_closed()) {
        Some(sender) => sender,
        None => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            sender
        }
    };
    sender.ready().await?;
    let body = Full::new(bytes::Bytes::from_static(&[b'x'; BODY]));
    let request = Request::post(path).header("host", address).body(body)?;
    let response = sender.send_request(request).await?;
    let is_good = response.status() == 200;
    response.into_body().collect().await?;
    pool.lock().push(sender);
    if is_good { Ok(()) } else { Err("another code than 200".into()) }
}
