use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use watchkeeper_front::CertificateSource as _;
use watchkeeper_testkit::{TestEnv, eventually};

use super::super::record::Trusted;
use super::*;
use crate::configuration::ConfigurationKind;

const NAME: &str = "apps-webhook.default.svc";
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How far an API server is behind what is stored. A new certificate has to wait for that.
const LAG: Duration = Duration::from_secs(9);

/// Files as somebody else writes them.
#[derive(Clone)]
struct Issued {
    certificate: String,
    key: String,
    authority: Trusted,
}

impl Issued {
    fn by(authority: &Trusted) -> Self {
        use watchkeeper_front::{Key, Purpose, pem};
        let (now, key) = (SystemTime::now(), Key::generate().unwrap());
        let (names, signer) = ([NAME.to_owned()], authority.authority().unwrap());
        let certificate = signer.issue(&key, ("hooks", &[]), &Purpose::Server(&names), now).unwrap();
        Self {
            certificate: pem::certificate(&certificate),
            key: pem::key(key.pkcs8()),
            authority: authority.clone(),
        }
    }

    fn write(&self, folder: &TempDir) {
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("tls.crt", &self.certificate);
        write("tls.key", &self.key);
        write("ca.crt", &self.authority.certificate);
    }

    fn served(&self) -> ServerCertificate {
        ServerCertificate::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).unwrap()
    }
}

fn authority(age: Duration) -> Trusted {
    Trusted::generate("others", SystemTime::now() - age, 90 * DAY).unwrap()
}

fn configuration() -> Configuration {
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]);
    let hook = |name: &str| {
        json!({
            "name": format!("{name}.example.com"), "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "default", "name": "apps-webhook"}},
        })
    };
    let body = json!({"webhooks": [hook("one"), hook("two")]});
    Configuration {
        kind: ConfigurationKind::Validating,
        name: "apps".into(),
        body,
        installed_by_others: false,
    }
}

/// A replica with a folder of its own.
struct Replica {
    folder: TempDir,
    certificate: ShownCertificate,
    status: Status,
    _task: JoinHandle<()>,
}

impl Replica {
    fn start(env: &TestEnv, files: &Issued) -> Self {
        let folder = tempfile::tempdir().unwrap();
        files.write(&folder);
        let (certificate, status) = (ShownCertificate::default(), Status::new("not yet"));
        let api = Api { connection: env.connection(), manager: "apps".into() };
        let mut keeper = FilesKeeper::new(
            api,
            folder.path().to_owned(),
            vec![configuration()],
            NAME.into(),
            certificate.clone(),
            status.clone(),
            None,
        );
        let task = tokio::spawn(async move { keeper.run(CancellationToken::new()).await });
        Self { folder, certificate, status, _task: task }
    }

    fn shows(&self, files: &Issued) -> bool {
        self.certificate.certificate(None) == Some(files.served())
    }
}

async fn live(env: &TestEnv) -> Value {
    let api = Api { connection: env.connection(), manager: "test".into() };
    api.get(&configuration().path()).await.unwrap().unwrap()
}

async fn shown(env: &TestEnv) -> Bundle {
    let found = bundles(&live(env).await);
    assert!(found.iter().all(|bundle| *bundle == found[0]), "the same for every webhook");
    Bundle::read(&found[0])
}

/// Has an API server ask every replica four times a second, by what it knew up to [`LAG`] ago.
fn admissions(
    env: &Arc<TestEnv>,
    replicas: &[&Replica],
    issued: &[Issued],
) -> (JoinHandle<()>, Arc<Mutex<usize>>) {
    let (env, asked) = (Arc::clone(env), Arc::new(Mutex::new(0)));
    let certificates: Vec<ShownCertificate> =
        replicas.iter().map(|replica| replica.certificate.clone()).collect();
    let issued = issued.to_vec();
    let count = Arc::clone(&asked);
    let task = tokio::spawn(async move {
        let mut known: VecDeque<(Instant, Bundle)> = VecDeque::new();
        loop {
            let bundle = shown(&env).await;
            match known.back_mut() {
                Some((until, last)) if *last == bundle => *until = Instant::now(),
                _ => known.push_back((Instant::now(), bundle)),
            }
            known.retain(|(until, _)| until.elapsed() <= LAG);
            for certificate in &certificates {
                let served = certificate.certificate(None).unwrap();
                let files = issued.iter().find(|files| files.served() == served).unwrap();
                for (_, bundle) in &known {
                    let chain: Vec<_> =
                        CertificateDer::pem_slice_iter(files.certificate.as_bytes()).flatten().collect();
                    verify(&chain, &[NAME.to_owned()], &bundle.text(), SystemTime::now()).unwrap();
                }
            }
            *count.lock() += 1;
            sleep(Duration::from_millis(250)).await;
        }
    });
    (task, asked)
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_lags_behind_costs_no_admission() {
    let env = Arc::new(TestEnv::start().await);
    let (old, new) = (authority(30 * DAY), authority(Duration::ZERO));
    let (before, after) = (Issued::by(&old), Issued::by(&new));
    let (quick, slow) = (Replica::start(&env, &before), Replica::start(&env, &before));
    eventually(|| async { quick.status.get().and(slow.status.get()) }).await;
    let (old, new) = (Bundle::read(&old.certificate), Bundle::read(&new.certificate));
    assert_eq!(shown(&env).await, old);
    let (load, asked) = admissions(&env, &[&quick, &slow], &[before.clone(), after.clone()]);

    after.write(&quick.folder);
    eventually(|| async { quick.shows(&after) }).await;
    assert!(slow.shows(&before));
    sleep(Duration::from_secs(60)).await;
    let both = shown(&env).await;
    assert!(both.contains(&old) && both.contains(&new));

    after.write(&slow.folder);
    eventually(|| async { slow.shows(&after) }).await;
    sleep(Duration::from_secs(60)).await;
    assert!(shown(&env).await.contains(&old), "until it has expired");
    assert!(!load.is_finished(), "{:?}", load.await);
    assert!(*asked.lock() > 400);
    load.abort();
    assert_eq!((quick.status.get(), slow.status.get()), (Ok(()), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn an_authority_that_has_expired_goes_and_all_others_stay() {
    let env = Arc::new(TestEnv::start().await);
    let (expired, old, new) = (authority(91 * DAY), authority(30 * DAY), authority(Duration::ZERO));
    let replica = Replica::start(&env, &Issued::by(&old));
    eventually(|| async { replica.status.get() }).await;
    let api = Api { connection: env.connection(), manager: "somebody".into() };
    let mut object = live(&env).await;
    let text = format!("{}{}{}", expired.certificate, old.certificate, new.certificate);
    for at in 0..2 {
        object["webhooks"][at]["clientConfig"]["caBundle"] =
            watchkeeper_go::base64::encode(text.as_bytes()).into();
    }
    api.replace(&configuration().path(), &object).await.unwrap();
    let left = Bundle::read(&format!("{}{}", old.certificate, new.certificate));
    eventually(|| async { shown(&env).await == left }).await;
    assert_eq!(replica.status.get(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_the_bundle_of_somebody_else_does_not_believe_waits() {
    let env = Arc::new(TestEnv::start().await);
    let (old, new) = (authority(30 * DAY), authority(Duration::ZERO));
    let (before, after) = (Issued::by(&old), Issued::by(&new));
    let replica = Replica::start(&env, &before);
    eventually(|| async { replica.status.get() }).await;
    // As cainjector does it.
    let api = Api { connection: env.connection(), manager: "cainjector".into() };
    let inject = |authority: &Trusted| {
        let bundle = watchkeeper_go::base64::encode(authority.certificate.as_bytes());
        let (api, env) = (&api, &env);
        async move {
            let mut object = live(env).await;
            object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] = "default/hooks".into();
            for at in 0..2 {
                object["webhooks"][at]["clientConfig"]["caBundle"] = bundle.clone().into();
            }
            api.replace(&configuration().path(), &object).await.unwrap();
        }
    };
    inject(&old).await;
    after.write(&replica.folder);
    sleep(SETTLE * 6).await;
    assert!(replica.shows(&before), "nobody believes the new one yet");
    assert_eq!(replica.status.get(), Ok(()));
    let version = live(&env).await["metadata"]["resourceVersion"].clone();
    sleep(SETTLE * 6).await;
    assert_eq!(live(&env).await["metadata"]["resourceVersion"], version, "nobody else writes it");
    inject(&new).await;
    eventually(|| async { replica.shows(&after) }).await;
    assert_eq!(shown(&env).await, Bundle::read(&new.certificate));
}
