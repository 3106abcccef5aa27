//! Nobody may do here what they may not do on the real server.
//!
//! The cases are made by `watchkeeper_conformance::paths`, and the answers of the real server are in `paths/recorded.txt`;
//! `scripts/conformance --record-paths` records them anew. Where ours answers in another way, without allowing more,
//! `paths/known.txt` has a line with the reason.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use watchkeeper_conformance::paths::{self, Case, Findings, Known, Record};
use watchkeeper_conformance::{Server, choice};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_may_do_here_what_they_may_not_do_on_the_real_server() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("paths");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("paths");
    fs::create_dir_all(&scratch).unwrap();
    // Ours takes no tokens from a file that others can read, which is how git keeps it.
    let tokens = scratch.join("tokens.csv");
    fs::copy(folder.join("tokens.csv"), &tokens).unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::start_with(&scratch, &["--token-file".as_ref(), tokens.as_os_str()]).unwrap();
    let (admin, anonymous) = server.clients().await.unwrap();
    if !paths::knows_users(&anonymous).await.unwrap() {
        // Only a server that somebody else started may have been started without them.
        assert!(choice("KUBECONFIG").is_some(), "the server does not know the users of {}", tokens.display());
        println!("left out, the server was not started with {}", folder.join("tokens.csv").display());
        return;
    }
    paths::prepare(&admin).await.unwrap();

    let cases: Arc<[Case]> = Case::all().into();
    let before = paths::state(&admin).await.unwrap();
    let outcomes = paths::ask(&anonymous, &cases).await.unwrap();
    let changes = paths::changes(&before, &paths::state(&admin).await.unwrap());
    let file = folder.join("recorded.txt");
    if choice("RECORD").is_some() {
        assert!(changes.is_empty(), "the cases had an effect: {changes:#?}");
        let again = paths::ask(&anonymous, &cases).await.unwrap();
        assert!(outcomes == again, "the server says this and that, perhaps it is too busy: record it again");
        fs::write(&file, Record::new(&cases, outcomes.clone()).to_text()).unwrap();
    }
    let recorded = Record::parse(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(recorded.fingerprint, Case::fingerprint(&cases), "recorded with other cases");
    assert_eq!(recorded.outcomes.len(), cases.len(), "recorded with other cases");

    let known = Known::parse(&fs::read_to_string(folder.join("known.txt")).unwrap()).unwrap();
    let found = Findings::of(&cases, &recorded.outcomes, &outcomes, &known);
    let report = found.report(&changes);
    fs::write(scratch.join("differences.md"), &report).unwrap();
    println!("{report}");
    assert!(found.exceptions.is_empty(), "{} may do here what they may not do there", found.exceptions.len());
    assert!(changes.is_empty(), "what was refused had an effect: {changes:#?}");
    assert!(found.unknown.is_empty(), "{} answers are not as recorded", found.unknown.len());
    if choice("KUBECONFIG").is_none() {
        assert!(found.idle.is_empty(), "nothing differs like this, take it off the list: {:#?}", found.idle);
    }
}
