//! A service that requests are sent to, and that answers as a test wants.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use super::place::eventually;

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) at: Instant,
    /// `POST /x`.
    pub(crate) line: String,
    /// In small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(other, _)| other == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// How a request is answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// With this head.
    Head(&'static str),
    /// Not at all.
    Silence,
}

#[derive(Clone)]
pub(crate) struct Hook {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    /// With what everything is answered while something is wrong.
    failing: Arc<Mutex<Option<&'static str>>>,
}

impl Hook {
    /// Answers with these, one after the other, and then with 204.
    pub(crate) fn start(answers: &[Answer]) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), answers)
    }

    pub(crate) fn on(listener: TcpListener, answers: &[Answer]) -> Self {
        let hook = Self {
            address: listener.local_addr().unwrap(),
            received: Arc::default(),
            answers: Arc::new(Mutex::new(answers.iter().cloned().collect())),
            failing: Arc::default(),
        };
        let service = hook.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let service = service.clone();
                thread::spawn(move || service.serve(stream));
            }
        });
        hook
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers everything with this head, until it is mended.
    pub(crate) fn fail(&self, head: &'static str) {
        *self.failing.lock().unwrap() = Some(head);
    }

    pub(crate) fn mend(&self) {
        *self.failing.lock().unwrap() = None;
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits for so many requests.
    pub(crate) fn wait(&self, count: usize) -> Vec<Received> {
        eventually("enough requests", || self.received().len() >= count);
        self.received()
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut stream = stream;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.rsplit_once(' ')?.0.to_owned();
            let mut headers = Vec::new();
            loop {
                let mut header = String::new();
                reader.read_line(&mut header).ok()?;
                let Some((name, value)) =
                    header.trim().split_once(": ").map(|(n, v)| (n.to_lowercase(), v.to_owned()))
                else {
                    break;
                };
                headers.push((name, value));
            }
            let mut received = Received { at: Instant::now(), line, headers, body: String::new() };
            let mut body = vec![0; received.header("content-length").parse().unwrap_or(0)];
            reader.read_exact(&mut body).ok()?;
            received.body = String::from_utf8(body).ok()?;
            self.received.lock().unwrap().push(received);
            let failing = self.failing.lock().unwrap().map(Answer::Head);
            let answer = failing.or_else(|| self.answers.lock().unwrap().pop_front());
            match answer.unwrap_or(Answer::Head("204 No Content")) {
                Answer::Head(head) => {
                    let length = if head.starts_with("204") { "" } else { "content-length: 0\r\n" };
                    write!(stream, "HTTP/1.1 {head}\r\n{length}\r\n").ok()?;
                }
                Answer::Silence => thread::sleep(std::time::Duration::from_secs(60)),
            }
        }
    }
}
