//! Pushes to a registry that others wrote, and to one that asks for logins.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use watchkeeper_connection::HttpClient;
use watchkeeper_image::{Image, Login, Platform, Pushed, Reference, Registry};

use crate::program::{elf, input};
use crate::run;

/// The registry of go-containerregistry, ended with the test.
struct Crane {
    child: Child,
    address: String,
}

impl Crane {
    /// Starts it, if it is there.
    fn start() -> Option<Self> {
        let program = program()?;
        let mut child = Command::new(program);
        child
            .args(["registry", "serve", "--address", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line =
            lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("serving"))).unwrap().unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        let port =
            line.rsplit(|char: char| !char.is_ascii_digit()).find(|digits| !digits.is_empty()).unwrap();
        Some(Self { child, address: format!("127.0.0.1:{port}") })
    }
}

impl Drop for Crane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where `scripts/packaging-tools` puts it.
fn program() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let program = target.join("packaging/bin/crane");
    if !program.is_file() {
        eprintln!("NOT RUN: there is no crane: scripts/packaging-tools crane");
        return None;
    }
    Some(program)
}

fn registry(place: &str, login: Option<Login>) -> Registry {
    Registry::new(HttpClient::new(None).unwrap(), Reference::parse(place).unwrap(), login, false)
}

#[tokio::test]
async fn a_registry_of_others_takes_it_validates_it_and_is_sent_nothing_twice() {
    let Some(crane) = Crane::start() else { return };
    let program = program().unwrap();
    let program = program.to_str().unwrap();
    let mut both = input();
    both.programs.push((Platform::parse("linux/arm64").unwrap(), elf(183)));
    let image = Image::build(&both).unwrap();
    let place = format!("{}/team/shop:1", crane.address);
    let mut registry = registry(&place, None);
    // The layers of two programs and what they share, two configurations, the document and its empty configuration.
    assert_eq!(registry.push(&image).await.unwrap(), Pushed { sent: 7, present: 0 });
    assert_eq!(registry.push(&image).await.unwrap(), Pushed { sent: 0, present: 7 });
    run(program, &["validate", "--remote", &place]);
    assert_eq!(run(program, &["digest", &place]).trim(), image.digest());
    let config = run(program, &["config", "--platform", "linux/arm64", &place]);
    assert!(config.contains("\"architecture\":\"arm64\"") && config.contains("65532:65532"), "{config}");
    // This registry keeps no lists of what refers to an image: what it is made of is found under a tag made of its digest.
    let referrers = format!("{}/team/shop:{}", crane.address, image.digest().replace(':', "-"));
    let listed = run(program, &["manifest", &referrers]);
    assert!(listed.contains("application/vnd.cyclonedx+json"), "{listed}");
}

/// A registry that asks who pushes, has all blobs and takes all manifests. It notes what it is asked.
struct Strict {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Strict {
    fn start(challenge: fn(&str) -> String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (notes, challenge) = (Arc::clone(&asked), challenge(&address));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (notes, challenge) = (Arc::clone(&notes), challenge.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &notes, &challenge));
            }
        });
        Self { address, asked }
    }
}

fn serve(stream: TcpStream, notes: &Mutex<Vec<String>>, challenge: &str) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut line, mut authorization, mut length) = (String::new(), String::new(), 0);
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            let (name, value) = header.split_once(':').unwrap_or(("", ""));
            match name.to_ascii_lowercase().as_str() {
                "authorization" => authorization = value.trim().to_owned(),
                "content-length" => length = value.trim().parse().unwrap(),
                "" => break,
                _ => {}
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let request = line.trim_end_matches(" HTTP/1.1\r\n");
        notes.lock().unwrap().push(format!("{request} {authorization}"));
        let answer = match (request, authorization.as_str()) {
            // user:secret
            (request, "Basic dXNlcjpzZWNyZXQ=") if request.starts_with("GET /token?") => {
                "200 OK\r\nContent-Length: 15\r\n\r\n{\"token\":\"good\"}".replace("15", "16")
            }
            (_, "Bearer good") | (_, "Basic dXNlcjpzZWNyZXQ=") if request.starts_with("HEAD") => {
                "200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()
            }
            (_, "Bearer good") | (_, "Basic dXNlcjpzZWNyZXQ=") => {
                "201 Created\r\nOCI-Subject: x\r\nContent-Length: 0\r\n\r\n".to_owned()
            }
            _ => format!("401 Unauthorized\r\nWWW-Authenticate: {challenge}\r\nContent-Length: 0\r\n\r\n"),
        };
        stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
    }
}

fn login(password: &str) -> Option<Login> {
    Some(Login { user: "user".into(), password: password.into() })
}

#[tokio::test]
async fn a_registry_that_asks_for_a_token_gets_one_where_it_says() {
    let strict = Strict::start(|address| {
        format!("Bearer realm=\"http://{address}/token\",service=\"reg\",scope=\"repository:shop:pull,push\"")
    });
    let image = Image::build(&input()).unwrap();
    let place = format!("{}/shop:1", strict.address);
    assert_eq!(registry(&place, login("secret")).push(&image).await.unwrap().present, 5);
    let asked = strict.asked.lock().unwrap().clone();
    assert_eq!(asked[1], "GET /token?scope=repository:shop:pull,push&service=reg Basic dXNlcjpzZWNyZXQ=");
    assert!(asked[2..].iter().all(|request| request.ends_with(" Bearer good")), "{asked:?}");

    for (login, expected) in [(None, "asks for a login"), (login("wrong"), "refuses this login")] {
        let error = registry(&place, login).push(&image).await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("wrong"), "{error}");
    }
}

#[tokio::test]
async fn a_registry_that_asks_for_a_password_gets_it() {
    let strict = Strict::start(|_| "Basic realm=\"registry\"".to_owned());
    let image = Image::build(&input()).unwrap();
    let place = format!("{}/shop:1", strict.address);
    registry(&place, login("secret")).push(&image).await.unwrap();
    let error = registry(&place, None).push(&image).await.unwrap_err().to_string();
    assert!(error.contains("asks for a login"), "{error}");
}
