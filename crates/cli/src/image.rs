//! `watchkeeper image`: an image of an operator, without a daemon.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use clap::Args;
use serde_json::Value;
use tokio::runtime;
use watchkeeper_connection::HttpClient;
use watchkeeper_image::{
    self as image, Error, Image as Built, Input, Login, Platform, Program, Reference, Registry, archive, sbom,
};

use crate::cargo::{self, Package};
use crate::failure::Failure;

/// Make an OCI image of an operator, without a daemon
///
/// The image holds the program and nothing else, runs as the user 65532 and needs no writable root. The same program gives the same digest: times are those of SOURCE_DATE_EPOCH, or none. What the program is made of is attached as a CycloneDX document.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Image {
    /// A static program, with its platform if there are several: linux/arm64=PATH [default: the crate in this folder is built]
    #[arg(long, value_name = "[PLATFORM=]PATH")]
    binary: Vec<String>,
    /// Build the crate for this platform; may be repeated, or be a list with commas [default: that of this machine]
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',', conflicts_with = "binary")]
    platform: Vec<String>,
    /// What the program is called in the image [default: as the package or the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where to write it: layout:DIR, oci-archive:FILE or docker-archive:FILE; may be repeated
    #[arg(long, value_name = "WHERE")]
    output: Vec<String>,
    /// Push it, for instance to registry.example.com/team/shop:1.0
    #[arg(long, value_name = "HOST/NAME:TAG")]
    push: Option<String>,
    /// What it is called where it is not pushed [default: NAME:VERSION]
    #[arg(long, value_name = "NAME:TAG")]
    tag: Option<String>,
    /// Certificates of authorities to put in, as PEM, for programs that speak TLS with others than the API server
    #[arg(long, value_name = "FILE")]
    ca_certificates: Option<PathBuf>,
    /// A label of the image and annotation of its manifests; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
    /// Attach this CycloneDX document instead of that of the crate
    #[arg(long, value_name = "FILE", conflicts_with = "no_sbom")]
    sbom: Option<PathBuf>,
    /// Attach nothing
    #[arg(long)]
    no_sbom: bool,
    /// Who pushes [default: what docker or podman remembers of the registry]
    #[arg(long, value_name = "USER", requires = "password_stdin", requires = "push")]
    username: Option<String>,
    /// Read the password or token from stdin
    #[arg(long, requires = "username")]
    password_stdin: bool,
    /// Believe registries whose certificates the authorities in this PEM file have issued, instead of those of the system
    #[arg(long, value_name = "FILE")]
    registry_ca: Option<PathBuf>,
    /// Speak to the registry without TLS, as is done on this machine in any case
    #[arg(long)]
    insecure: bool,
    /// Say what there would be, and write and push nothing
    #[arg(long)]
    dry_run: bool,
    /// Print a Dockerfile that makes such an image, for those who build with Docker
    #[arg(long, exclusive = true)]
    dockerfile: bool,
}

const EXAMPLES: &str = "\
Examples:
  watchkeeper image --output layout:target/image        builds the crate in this folder
  watchkeeper image --output docker-archive:shop.tar && docker load -i shop.tar
  watchkeeper image --push registry.example.com/team/shop:1.0
  watchkeeper image --platform linux/amd64,linux/arm64 --push registry.example.com/team/shop:1.0
  watchkeeper image --binary ./shop --output oci-archive:shop.tar --no-sbom
  watchkeeper image --dockerfile > Dockerfile

The digest is printed last. A program that is linked dynamically is refused: it would not start.

Exit codes:
  0  written and pushed
  1  something failed: the build, a file, the registry
  2  what was given cannot be: bad arguments or files, no static program; nothing is written";

/// Where an image is written.
enum Output {
    Layout(PathBuf),
    OciArchive(PathBuf),
    DockerArchive(PathBuf),
}

impl Output {
    fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::input(format!(
                "--output {text}: write layout:DIR, oci-archive:FILE or docker-archive:FILE"
            ))
        };
        let (kind, path) = text.split_once(':').filter(|(_, path)| !path.is_empty()).ok_or_else(wrong)?;
        let path = PathBuf::from(path);
        match kind {
            "layout" => Ok(Self::Layout(path)),
            "oci-archive" => Ok(Self::OciArchive(path)),
            "docker-archive" => Ok(Self::DockerArchive(path)),
            _ => Err(wrong()),
        }
    }

    fn path(&self) -> &Path {
        let (Self::Layout(path) | Self::OciArchive(path) | Self::DockerArchive(path)) = self;
        path
    }

    fn write(&self, built: &Built, tag: &str, time: u64) -> Result<(), Error> {
        match self {
            Self::Layout(path) => archive::write_layout(built, Some(tag), path),
            Self::OciArchive(path) => archive::write_oci_archive(built, Some(tag), time, path),
            Self::DockerArchive(path) => archive::write_docker_archive(built, tag, time, path),
        }
    }
}

impl Image {
    /// Builds, writes and pushes.
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.dockerfile {
            let name = Package::here()?.program()?;
            let _ = io::stdout().write_all(image::dockerfile(&name).as_bytes());
            return Ok(());
        }
        let outputs = self.output.iter().map(|text| Output::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let place = self.push.as_deref().map(Reference::parse).transpose().map_err(failure)?;
        if outputs.is_empty() && place.is_none() && !self.dry_run {
            return Err(Failure::input(
                "say where the image is to go: --output layout:DIR, --push HOST/NAME:TAG, or --dry-run",
            ));
        }
        if let Some(there) = outputs.iter().map(Output::path).find(|path| path.symlink_metadata().is_ok()) {
            return Err(Failure::input(format!(
                "{} exists already: remove it, or choose another place",
                there.display()
            )));
        }
        let time = time()?;
        let (mut input, version) = self.input(time)?;
        input.labels = self.labels(&version)?;
        let built = Built::build(&input).map_err(failure)?;
        let tag = self
            .tag
            .clone()
            .unwrap_or_else(|| format!("{}:{}", input.name, version.as_deref().unwrap_or("latest")));
        let login = self.login(place.as_ref())?;
        let mut told = String::new();
        for (platform, bytes) in built.sizes() {
            told.push_str(&format!("{platform}: {:.1} MB\n", bytes as f64 / 1e6));
        }
        if !self.dry_run {
            for output in &outputs {
                output.write(&built, &tag, time).map_err(failure)?;
                told.push_str(&format!("written to {}\n", output.path().display()));
            }
            if let Some(place) = place {
                let pushed = self.push(&built, &place, login)?;
                told.push_str(&format!(
                    "pushed to {place}: {} blobs, {} were there\n",
                    pushed.sent, pushed.present
                ));
            }
        }
        told.push_str(&format!("{}\n", built.digest()));
        let _ = io::stdout().write_all(told.as_bytes());
        Ok(())
    }

    /// The programs and what is put beside them, and the version if that is known.
    fn input(&self, time: u64) -> Result<(Input, Option<String>), Failure> {
        let mut input = Input { time, ..Input::default() };
        let mut version = None;
        if self.binary.is_empty() {
            let package = Package::here()?;
            input.name = package.program()?;
            version = package.version();
            for platform in self.platforms()? {
                let target = platform.target().ok_or_else(|| {
                    Failure::input(format!("{platform}: no target of Rust is known for it; build the program, and give it with --binary {platform}=PATH"))
                })?;
                let program = cargo::build_static(&input.name, target)?;
                input.programs.push((platform, read(&program)?));
            }
            if self.sbom.is_none() && !self.no_sbom {
                let targets: Vec<&str> =
                    input.programs.iter().filter_map(|(platform, _)| platform.target()).collect();
                let metadata = cargo::dependencies(&targets)?;
                input.sbom = sbom::from_cargo(&metadata, package.name(), time)
                    .map(|sbom| sbom.to_string().into_bytes());
            }
        }
        for given in &self.binary {
            let (platform, path) = match given.split_once('=') {
                Some((platform, path)) => {
                    (Some(Platform::parse(platform).map_err(failure)?), Path::new(path))
                }
                None => (None, Path::new(given)),
            };
            let bytes = read(path)?;
            let named = |error: Error| Failure::input(format!("{}: {error}", path.display()));
            let platform = platform.map_or_else(|| Program::read(&bytes).map(|program| program.platform), Ok);
            input.programs.push((platform.map_err(named)?, bytes));
            if input.name.is_empty() {
                input.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            }
        }
        if let Some(name) = &self.name {
            input.name.clone_from(name);
        }
        let is_part = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        if input.name.is_empty() || input.name.starts_with('.') || !input.name.chars().all(is_part) {
            return Err(Failure::input(format!(
                "{:?} cannot be the name of a program in an image: say --name",
                input.name
            )));
        }
        input.certificates = self.ca_certificates.as_deref().map(read).transpose()?;
        if let Some(path) = &self.sbom {
            let text = read(path)?;
            let document: Value = serde_json::from_slice(&text).unwrap_or_default();
            if document["bomFormat"] != "CycloneDX" {
                return Err(Failure::input(format!(
                    "--sbom {}: this is no CycloneDX document in JSON",
                    path.display()
                )));
            }
            input.sbom = Some(text);
        }
        Ok((input, version))
    }

    fn platforms(&self) -> Result<Vec<Platform>, Failure> {
        if !self.platform.is_empty() {
            return self.platform.iter().map(|text| Platform::parse(text).map_err(failure)).collect();
        }
        let architecture = match env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            other => other,
        };
        Ok(vec![Platform::parse(&format!("linux/{architecture}")).map_err(failure)?])
    }

    fn labels(&self, version: &Option<String>) -> Result<BTreeMap<String, String>, Failure> {
        let mut labels = BTreeMap::new();
        if let Some(version) = version {
            labels.insert("org.opencontainers.image.version".to_owned(), version.clone());
        }
        for label in &self.label {
            let (key, value) = label
                .split_once('=')
                .filter(|(key, _)| !key.is_empty())
                .ok_or_else(|| Failure::input(format!("--label {label}: write KEY=VALUE")))?;
            labels.insert(key.to_owned(), value.to_owned());
        }
        Ok(labels)
    }

    fn login(&self, place: Option<&Reference>) -> Result<Option<Login>, Failure> {
        let Some(user) = self.username.clone() else {
            return Ok(place.and_then(|place| remembered(&place.registry)));
        };
        let mut password = String::new();
        io::stdin()
            .read_to_string(&mut password)
            .map_err(|error| Failure::input(format!("stdin: {error}")))?;
        let password = password.trim_end_matches(['\r', '\n']).to_owned();
        match password.is_empty() {
            true => Err(Failure::input("--password-stdin: there is no password on stdin")),
            false => Ok(Some(Login { user, password })),
        }
    }

    fn push(&self, built: &Built, place: &Reference, login: Option<Login>) -> Result<image::Pushed, Failure> {
        let runtime =
            runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::running)?;
        runtime.block_on(async {
            let client = HttpClient::new(self.registry_ca.clone()).map_err(Failure::input)?;
            let mut registry = Registry::new(client, place.clone(), login, self.insecure);
            registry.push(built).await.map_err(failure)
        })
    }
}

/// The login that docker or podman keep for a registry, if it is in their file itself and not with a helper.
fn remembered(registry: &str) -> Option<Login> {
    let docker = env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let docker =
        docker.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".docker")))?.join("config.json");
    let podman = env::var_os("REGISTRY_AUTH_FILE").map(PathBuf::from);
    [podman, Some(docker)].into_iter().flatten().find_map(|file| {
        let config: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        let auth = config["auths"][registry]["auth"].as_str()?;
        let auth = String::from_utf8(watchkeeper_go::base64::decode(auth).ok()?).ok()?;
        let (user, password) = auth.split_once(':')?;
        Some(Login { user: user.to_owned(), password: password.to_owned() })
    })
}

fn time() -> Result<u64, Failure> {
    match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text
            .parse()
            .map_err(|_| Failure::input(format!("SOURCE_DATE_EPOCH={text}: this is no number of seconds"))),
        Err(_) => Ok(0),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::input(format!("{}: {error}", path.display())))
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Input(_) => Failure::input(error),
        error => Failure::running(error),
    }
}
