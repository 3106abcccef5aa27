use std::collections::BTreeMap;

use serde_json::{Value, json};
use watchkeeper_go::calendar;

use crate::blob::Blob;
use crate::error::Error;
use crate::layer::Layer;
use crate::program::{Platform, Program};
use crate::tar::Entry;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const CYCLONEDX: &str = "application/vnd.cyclonedx+json";

/// The user and group that the program runs as.
pub const USER: u32 = 65532;
/// Where the certificates of authorities are in an image, which is where programs look for them.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// The contents of an image.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The name of the program, which is at the root of the image.
    pub name: String,
    /// The program for each platform.
    pub programs: Vec<(Platform, Vec<u8>)>,
    /// The certificate authorities in PEM, for programs that connect to others over TLS.
    pub certificates: Option<Vec<u8>>,
    /// Labels of the image, which are annotations of its manifests, too.
    pub labels: BTreeMap<String, String>,
    /// The software bill of materials, as CycloneDX.
    pub sbom: Option<Vec<u8>>,
    /// The time of creation, in seconds since the epoch: `SOURCE_DATE_EPOCH`.
    pub time: u64,
}

/// An image, complete and in memory.
#[derive(Clone, Debug)]
pub struct Image {
    /// One for each platform.
    pub(crate) variants: Vec<Variant>,
    /// The index of several platforms.
    pub(crate) index: Option<Blob>,
    /// What refers to the image: its bill of materials.
    pub(crate) referrer: Option<Referrer>,
}

/// An image for one platform.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub(crate) platform: Platform,
    pub(crate) manifest: Blob,
    pub(crate) config: Blob,
    pub(crate) layers: Vec<Layer>,
}

/// Something that is said about an image.
#[derive(Clone, Debug)]
pub(crate) struct Referrer {
    pub(crate) manifest: Blob,
    pub(crate) blobs: Vec<Blob>,
}

impl Image {
    /// Builds an image.
    ///
    /// # Errors
    ///
    /// If there is no program, two for one platform, or one that is no program of its platform.
    pub fn build(input: &Input) -> Result<Self, Error> {
        if input.programs.is_empty() {
            return Err(Error::Input("there is no program to make an image of".to_owned()));
        }
        let mut programs: Vec<&(Platform, Vec<u8>)> = input.programs.iter().collect();
        programs.sort_by(|(one, _), (other, _)| one.cmp(other));
        for pair in programs.windows(2) {
            if pair[0].0 == pair[1].0 {
                return Err(Error::Input(format!("there are two programs for {}", pair[0].0)));
            }
        }
        let base = base(input)?;
        let variants = programs.iter().map(|(platform, bytes)| variant(input, &base, platform, bytes));
        let variants = variants.collect::<Result<Vec<Variant>, Error>>()?;
        let index = (variants.len() > 1).then(|| index(input, &variants));
        let mut image = Self { variants, index, referrer: None };
        image.referrer = input.sbom.as_ref().map(|sbom| referrer(&image, sbom, input.time));
        Ok(image)
    }

    /// The blob that the tag refers to: the index, or the manifest if there is one platform only.
    pub fn root(&self) -> &Blob {
        self.index.as_ref().unwrap_or(&self.variants[0].manifest)
    }

    /// The digest of the image.
    pub fn digest(&self) -> &str {
        &self.root().digest
    }

    /// The bytes that a pull transfers, for each platform.
    pub fn sizes(&self) -> impl Iterator<Item = (&Platform, usize)> {
        self.variants.iter().map(|variant| {
            let layers: usize = variant.layers.iter().map(|layer| layer.blob.bytes.len()).sum();
            (&variant.platform, layers + variant.config.bytes.len() + variant.manifest.bytes.len())
        })
    }

    /// Everything that it is made of, what is referred to before what refers to it, each once.
    pub fn blobs(&self) -> Vec<&Blob> {
        let mut blobs: Vec<&Blob> = Vec::new();
        let of_variants = self.variants.iter().flat_map(|variant| {
            variant.layers.iter().map(|layer| &layer.blob).chain([&variant.config, &variant.manifest])
        });
        let referrer =
            self.referrer.iter().flat_map(|referrer| referrer.blobs.iter().chain([&referrer.manifest]));
        for blob in of_variants.chain(&self.index).chain(referrer) {
            if !blobs.iter().any(|known| known.digest == blob.digest) {
                blobs.push(blob);
            }
        }
        blobs
    }
}

/// What is the same for all platforms: the names of users, and certificates.
fn base(input: &Input) -> Result<Layer, Error> {
    let passwd =
        format!("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/:/sbin/nologin\n");
    let group = format!("root:x:0:\nnonroot:x:{USER}:\n");
    let file = |path, bytes| Entry { path, mode: 0o644, bytes };
    let mut files = vec![file("etc/passwd", passwd.as_bytes()), file("etc/group", group.as_bytes())];
    if let Some(certificates) = &input.certificates {
        if !certificates.windows(27).any(|window| window == b"-----BEGIN CERTIFICATE-----") {
            return Err(Error::Input("the file of certificates holds none (PEM)".to_owned()));
        }
        files.push(file(CERTIFICATES, certificates));
    }
    Layer::new(&files, input.time)
}

fn variant(input: &Input, base: &Layer, platform: &Platform, bytes: &[u8]) -> Result<Variant, Error> {
    let program = Program::read(bytes)?;
    if program.platform.architecture != platform.architecture {
        return Err(Error::Input(format!("the program for {platform} is one for {}", program.platform)));
    }
    if let Some(loader) = program.loader {
        return Err(Error::Input(format!(
            "the program for {platform} is linked dynamically: it asks for {loader}, which the image does not have; build it with --target {}",
            platform.target().unwrap_or("of a static libc")
        )));
    }
    let layers =
        vec![base.clone(), Layer::new(&[Entry { path: &input.name, mode: 0o755, bytes }], input.time)?];
    let created = time(input.time);
    let mut environment = vec!["PATH=/".to_owned()];
    if input.certificates.is_some() {
        environment.push(format!("SSL_CERT_FILE=/{CERTIFICATES}"));
    }
    let mut config = json!({
        "created": created,
        "os": platform.os,
        "architecture": platform.architecture,
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": [format!("/{}", input.name)],
            "Env": environment,
            "WorkingDir": "/",
            "Labels": input.labels,
        },
        "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|layer| &layer.unpacked).collect::<Vec<_>>()},
        "history": [
            {"created": created, "created_by": "watchkeeper image: users and certificates"},
            {"created": created, "created_by": format!("watchkeeper image: {}", input.name)},
        ],
    });
    if let Some(variant) = &platform.variant {
        config["variant"] = json!(variant);
    }
    let config = Blob::json(CONFIG, &config);
    let mut manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config.descriptor(),
        "layers": layers.iter().map(|layer| layer.blob.descriptor()).collect::<Vec<_>>(),
    });
    annotate(&mut manifest, input);
    Ok(Variant { platform: platform.clone(), manifest: Blob::json(MANIFEST, &manifest), config, layers })
}

fn annotate(value: &mut Value, input: &Input) {
    let mut annotations = input.labels.clone();
    annotations.entry("org.opencontainers.image.created".to_owned()).or_insert_with(|| time(input.time));
    value["annotations"] = json!(annotations);
}

fn index(input: &Input, variants: &[Variant]) -> Blob {
    let manifests: Vec<Value> = variants
        .iter()
        .map(|variant| {
            let mut descriptor = variant.manifest.descriptor();
            let Platform { os, architecture, variant } = &variant.platform;
            descriptor["platform"] = json!({"os": os, "architecture": architecture});
            if let Some(variant) = variant {
                descriptor["platform"]["variant"] = json!(variant);
            }
            descriptor
        })
        .collect();
    let mut index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    annotate(&mut index, input);
    Blob::json(INDEX, &index)
}

/// Attaches a bill of materials to an image.
fn referrer(image: &Image, sbom: &[u8], at: u64) -> Referrer {
    let (empty, sbom) = (Blob::new(EMPTY, "{}"), Blob::new(CYCLONEDX, sbom.to_vec()));
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": CYCLONEDX,
        "config": empty.descriptor(),
        "layers": [sbom.descriptor()],
        "subject": image.root().descriptor(),
        "annotations": {"org.opencontainers.image.created": time(at)},
    });
    Referrer { manifest: Blob::json(MANIFEST, &manifest), blobs: vec![empty, sbom] }
}

/// A moment as RFC 3339 writes it.
pub(crate) fn time(seconds: u64) -> String {
    // Beyond the year 9999 there is no such form.
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).min(253_402_300_799);
    let (year, month, day) = calendar::date(seconds.div_euclid(86_400));
    let rest = seconds.rem_euclid(86_400);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}
