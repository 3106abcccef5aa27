//! A MariaDB server of our own: started in a temporary directory, on a port of loopback, and stopped when nobody needs it any more.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use watchkeeper_sources::mysql::Mysql;

/// Longer than anything takes, also where the machine is busy.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Runs the server for as long as somebody holds its other end: a test that is killed leaves nothing behind.
const KEEPER: &str = r#"trap '' HUP INT TERM
dir=$1; shift
"$@" >>"$dir/log" 2>&1 &
echo $! >"$dir/pid"
read -r last
[ "$last" = left ] || kill -KILL $!
wait $!
[ "$last" = left ] || rm -rf "$dir""#;

pub(crate) struct Server {
    dir: PathBuf,
    pub(crate) port: u16,
    options: Vec<String>,
    keeper: Child,
}

/// Where a program is: Debian puts the server where only root looks.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|directory: PathBuf| directory.join(name))
        .find(|program| program.exists())
        .unwrap_or_else(|| panic!("there is no {name}: scripts/setup installs it, or apt-get install mariadb-server-core mariadb-client-core"))
}

pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

impl Server {
    /// The server that most tests share, each in a database of its own.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A server with these settings besides those that all have.
    pub(crate) fn start(options: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("watchkeeper-mariadb").tempdir().unwrap().keep();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let user = run(Command::new("id").arg("-un"));
        let all = [
            format!("--datadir={}", dir.join("data").display()),
            format!("--user={}", user.trim()),
            "--skip-name-resolve".into(),
            format!("--tmpdir={}", dir.display()),
            "--innodb-flush-log-at-trx-commit=0".into(),
            "--innodb-log-file-size=8M".into(),
            "--innodb-buffer-pool-size=32M".into(),
            // Not that of whoever runs the tests: what is read does not depend on it.
            "--default-time-zone=+09:00".into(),
            "--character-set-server=latin1".into(),
        ];
        let options: Vec<String> =
            all.into_iter().chain(options.iter().map(|option| (*option).to_owned())).collect();
        let install = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"];
        run(Command::new(program("mariadb-install-db")).args(install).args(&options[..6]));
        let keeper = Self::run(&dir, port, &options);
        let server = Self { dir, port, options, keeper };
        server.ready();
        server
    }

    fn run(dir: &Path, port: u16, options: &[String]) -> Child {
        Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(dir)
            .arg(program("mariadbd"))
            .arg("--no-defaults")
            .args(options)
            .args(["--bind-address=127.0.0.1", &format!("--port={port}")])
            .arg(format!("--socket={}", dir.join("socket").display()))
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
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let log = || std::fs::read_to_string(self.path("log")).unwrap_or_default();
            assert!(Instant::now() < due, "the server did not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the server as a crash would.
    pub(crate) fn kill(&mut self) {
        let pid = std::fs::read_to_string(self.path("pid")).unwrap();
        let _ = Command::new("kill").args(["-9", pid.trim()]).stderr(Stdio::null()).status();
        if let Some(mut stdin) = self.keeper.stdin.take() {
            let _ = stdin.write_all(b"left\n");
        }
        let _ = self.keeper.wait();
    }

    /// Starts it again after [`kill`](Self::kill).
    pub(crate) fn restart(&mut self) {
        self.keeper = Self::run(&self.dir, self.port, &self.options);
        self.ready();
    }

    pub(crate) fn url(&self, user: &str, database: &str) -> String {
        format!("mysql://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// A database that nobody else uses.
    pub(crate) fn database(&self) -> Database {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let socket = self.path("socket");
        let client = Client::connect(&socket);
        client.sql(&format!("CREATE DATABASE {name}; USE {name}"));
        Database { client, url: self.url("root", &name), name, socket }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Another client than ours, so that nobody agrees with himself: MariaDB's own, which is told what to do and says when it is done.
pub(crate) struct Client {
    child: Mutex<(Child, ChildStdin, BufReader<ChildStdout>)>,
}

impl Client {
    fn connect(socket: &Path) -> Self {
        let mut child = Command::new(program("mariadb"))
            .args(["--no-defaults", "--user=root", "--batch", "--unbuffered", "--skip-column-names", "--raw"])
            .args(["--default-character-set=utf8mb4", "--max-allowed-packet=1G"])
            .arg(format!("--socket={}", socket.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child: Mutex::new((child, stdin, stdout)) }
    }

    /// Does all of this, and says what came of it, a line for each row.
    pub(crate) fn sql(&self, statements: &str) -> Vec<String> {
        const DONE: &str = "-- done --";
        let mut child = self.child.lock().unwrap();
        let (_, stdin, stdout) = &mut *child;
        writeln!(stdin, "{statements};\nSELECT '{DONE}';").unwrap();
        stdin.flush().unwrap();
        let mut lines = Vec::new();
        for line in stdout.lines() {
            match line.unwrap() {
                line if line == DONE => return lines,
                line => lines.push(line),
            }
        }
        panic!("{statements}: refused");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Ok(child) = self.child.get_mut() {
            let _ = child.0.kill();
            let _ = child.0.wait();
        }
    }
}

pub(crate) struct Database {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) name: String,
    socket: PathBuf,
}

impl Database {
    pub(crate) fn sql(&self, statements: &str) -> Vec<String> {
        self.client.sql(statements)
    }

    /// Another connection to the same database.
    pub(crate) fn another(&self) -> Client {
        let client = Client::connect(&self.socket);
        client.sql(&format!("USE {}", self.name));
        client
    }

    /// `items (name, value)`, with a source that looks often.
    pub(crate) fn items(&self) -> Mysql {
        self.sql("CREATE TABLE items (name varchar(200) PRIMARY KEY, value bigint NOT NULL)");
        self.source("items")
    }

    pub(crate) fn source(&self, table: &str) -> Mysql {
        Mysql::table(&self.url, table).interval(Duration::from_millis(20))
    }

    pub(crate) fn put(&self, name: &str, value: i64) {
        self.sql(&format!(
            "INSERT INTO items VALUES ('{name}', {value}) ON DUPLICATE KEY UPDATE value = {value}"
        ));
    }

    /// Ends all connections of sources to this database.
    pub(crate) fn cut(&self) {
        let ours = format!(
            "SELECT id FROM information_schema.processlist WHERE db = '{}' AND id <> connection_id() AND host <> 'localhost'",
            self.name
        );
        for id in self.sql(&ours) {
            self.sql(&format!("KILL SOFT CONNECTION {id}"));
        }
    }
}
