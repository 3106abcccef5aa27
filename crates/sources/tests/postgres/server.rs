//! A PostgreSQL server of our own: started in a temporary directory, on a port of loopback, and stopped when nobody needs it any more.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};
use watchkeeper_sources::postgres::Postgres;

/// Longer than anything takes, also where the machine is busy.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Runs the server for as long as somebody holds its other end: a test that is killed leaves nothing behind.
const KEEPER: &str = r#"trap '' HUP INT TERM
dir=$1; shift
"$@" >>"$dir/log" 2>&1 &
read -r last
[ "$last" = left ] || kill -QUIT $!
wait $!
[ "$last" = left ] || rm -rf "$dir""#;

const HBA: &str = "local all all trust
host all locked 127.0.0.1/32 scram-sha-256
host all old 127.0.0.1/32 md5
host all all 127.0.0.1/32 trust
";

pub(crate) struct Server {
    dir: PathBuf,
    pub(crate) port: u16,
    options: Vec<String>,
    keeper: Child,
}

/// Where the programs are that Debian does not put into the path.
fn programs() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    versions
        .into_iter()
        .rev()
        .chain(std::env::split_paths(&path))
        .find(|directory| directory.join("initdb").exists() && directory.join("postgres").exists())
        .expect("there is no PostgreSQL server: scripts/setup installs it, or apt-get install postgresql")
}

pub(crate) fn program(name: &str) -> PathBuf {
    programs().join(name)
}

/// The server refuses to run as root, so that it runs as the user that the package has made for it.
fn as_server(program: &Path) -> Vec<String> {
    let program = program.display().to_string();
    match run(Command::new("id").arg("-u")).trim() {
        "0" => ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", &program]
            .map(String::from)
            .to_vec(),
        _ => vec![program],
    }
}

pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir("/");
    command
}

impl Server {
    /// The server that most tests share, each in a database of its own.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A server with these settings besides those that all have.
    pub(crate) fn start(options: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("watchkeeper-postgres").tempdir().unwrap().keep();
        let data = dir.join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
        let mut initdb = as_server(&program("initdb"));
        if initdb.len() > 1 {
            run(Command::new("chown").arg("-R").arg("postgres:").arg(&dir));
        }
        let data = data.display().to_string();
        let arguments =
            ["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
        initdb.extend(arguments.map(String::from));
        run(&mut command(&initdb));
        std::fs::write(dir.join("data/pg_hba.conf"), HBA).unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let all = [
            "listen_addresses=127.0.0.1",
            "wal_level=logical",
            "fsync=off",
            "max_connections=200",
            "max_replication_slots=100",
            "max_wal_senders=100",
            "password_encryption=scram-sha-256",
            // So little that a large transaction is spilled to the disk while it is decoded.
            "logical_decoding_work_mem=64kB",
        ];
        let options: Vec<String> = all.iter().chain(options).map(|option| (*option).to_owned()).collect();
        let keeper = Self::run(&dir, port, &options);
        let server = Self { dir, port, options, keeper };
        server.ready();
        server
    }

    fn run(dir: &Path, port: u16, options: &[String]) -> Child {
        let mut postgres = as_server(&program("postgres"));
        let data = dir.join("data").display().to_string();
        let arguments =
            ["-D", &data, "-p", &port.to_string(), "-k", &dir.display().to_string()].map(String::from);
        postgres.extend(arguments);
        postgres.extend(options.iter().flat_map(|option| ["-c".to_owned(), option.clone()]));
        Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(dir)
            .args(postgres)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn ready(&self) {
        let due = Instant::now() + LONG;
        while !self.is_ready() {
            let log = || std::fs::read_to_string(self.path("log")).unwrap_or_default();
            assert!(Instant::now() < due, "the server did not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn pid(&self) -> Option<String> {
        let file = std::fs::read_to_string(self.path("data/postmaster.pid")).ok()?;
        file.lines().next().map(str::to_owned)
    }

    /// Ends the server as a crash would.
    pub(crate) fn kill(&mut self) {
        let pid = self.pid().unwrap();
        // It makes no more of them.
        let _ = Command::new("kill").args(["-STOP", &pid]).stderr(Stdio::null()).status();
        // All of them at once: what is left of a server keeps the next one from starting.
        let children = Command::new("ps").args(["--ppid", &pid, "-o", "pid="]).output().unwrap();
        let children = String::from_utf8_lossy(&children.stdout).into_owned();
        let all: Vec<&str> = std::iter::once(&*pid).chain(children.split_whitespace()).collect();
        let _ = Command::new("kill").arg("-9").args(&all).stderr(Stdio::null()).status();
        self.leave();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts it again after [`kill`](Self::kill).
    pub(crate) fn restart(&mut self) {
        // What the crash has left says that the server is running, and its number may be somebody else's by now.
        let _ = std::fs::remove_file(self.path("data/postmaster.pid"));
        let _ = std::fs::remove_file(self.path(&format!(".s.PGSQL.{}.lock", self.port)));
        let path = self.path("log");
        let log = || std::fs::read_to_string(&path).unwrap_or_default();
        let before = log().len();
        self.keeper = Self::run(&self.dir, self.port, &self.options);
        let due = Instant::now() + LONG;
        while !self.is_ready() {
            let said = log().split_off(before);
            // One that was being made when its server was killed is not gone yet.
            if said.contains("pre-existing shared memory block") && Instant::now() < due {
                self.leave();
                return self.restart();
            }
            assert!(Instant::now() < due, "the server did not start: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The server says so in the last line of this file.
    fn is_ready(&self) -> bool {
        let pid = self.path("data/postmaster.pid");
        std::fs::read_to_string(pid).is_ok_and(|file| file.trim_end().ends_with("ready"))
    }

    fn leave(&mut self) {
        if let Some(mut stdin) = self.keeper.stdin.take() {
            let _ = stdin.write_all(b"left\n");
        }
        let _ = self.keeper.wait();
    }

    pub(crate) fn url(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// A database that nobody else uses.
    pub(crate) async fn database(&self) -> Database {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let server = connect(&self.url("postgres", "postgres")).await;
        server.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let url = self.url("postgres", &name);
        Database { client: connect(&url).await, url, name }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

pub(crate) struct Database {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) name: String,
}

/// Another client than ours, so that nobody agrees with himself.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Database {
    pub(crate) async fn sql(&self, statements: &str) {
        if let Err(error) = self.client.batch_execute(statements).await {
            panic!("{statements}: {error:?}");
        }
    }

    pub(crate) async fn number(&self, statement: &str) -> i64 {
        self.client.query_one(statement, &[]).await.unwrap().get(0)
    }

    /// `items (name, value)`, with a source that looks often.
    pub(crate) async fn items(&self) -> Postgres {
        self.sql("CREATE TABLE items (name text PRIMARY KEY, value bigint NOT NULL)").await;
        self.source("items")
    }

    pub(crate) fn source(&self, table: &str) -> Postgres {
        Postgres::table(&self.url, table).interval(Duration::from_millis(20))
    }

    pub(crate) async fn put(&self, name: &str, value: i64) {
        self.sql(&format!(
            "INSERT INTO items VALUES ('{name}', {value}) ON CONFLICT (name) DO UPDATE SET value = {value}"
        ))
        .await;
    }

    /// Ends all connections of sources to this database.
    pub(crate) async fn cut(&self) {
        self.sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
             WHERE application_name = 'watchkeeper' AND datname = current_database()",
        )
        .await;
    }

    /// Waits until this holds.
    pub(crate) async fn until(&self, condition: &str) {
        let due = Instant::now() + LONG;
        loop {
            let row = self.client.query_one(&format!("SELECT ({condition})"), &[]).await.unwrap();
            if row.get::<_, Option<bool>>(0) == Some(true) {
                return;
            }
            assert!(Instant::now() < due, "{condition}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
