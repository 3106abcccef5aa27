//! Webhooks that are a reason to read a source.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::place::{Place, eventually};

/// Of `{}` with the secret `a secret of the shop`, as `openssl dgst -sha256 -hmac` has it.
const SIGNATURE: &str = "5e7d4a6dfc742d5a5d6cbcbd5afb5b6f058c99bf64601e3c40d8b9d77490ed4c";

/// Delivers `{}`. Returns the status of the answer; `None` if nobody listens.
fn deliver(address: SocketAddr, id: &str, signature: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(
        stream,
        "POST / HTTP/1.1\r\nhost: hook\r\nx-github-delivery: {id}\r\nx-hub-signature-256: sha256={signature}\r\n\
         content-length: 2\r\nconnection: close\r\n\r\n{{}}"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1).map(str::to_owned)
}

#[test]
fn a_delivery_has_a_source_read_that_would_wait_for_an_hour() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = Place::empty();
    place.write("secrets", "a secret of the shop\n");
    place.write(
        "reactor.yaml",
        &format!(
            "apiVersion: run.watchkeeper.dev/v1alpha1\nkind: Reactor\nmetadata: {{name: test}}\nspec:\n  sources:\n  - name: routes\n    \
             url: file:./routes/?poll=1h&rescan=1h\n    settings: {{apiVersion: example.com/v1, kind: Route, webhookListen: '{address}', \
             webhookSecretFile: secrets, webhookScheme: github}}\n  reactions:\n  - {{name: log, on: routes, do: {{shell: \
             'echo \"$WATCHKEEPER_EVENT $WATCHKEEPER_NAME\" >> log'}}}}\n"
        ),
    );
    place.route("a", 1);
    let mut runner = place.run(&[]);
    runner.says("log: added a: done in");
    place.route("b", 1);
    let forged = SIGNATURE.replace('5', "6");
    assert_eq!(deliver(address, "1", &forged).as_deref(), Some("401"));
    assert_eq!(deliver(address, "2", SIGNATURE).as_deref(), Some("202"));
    runner.says("log: added b: done in");
    // It still listens, though the feed is another one.
    place.remove("a");
    assert_eq!(deliver(address, "3", SIGNATURE).as_deref(), Some("202"));
    runner.says("log: gone a: done in");
    runner.signal("TERM");
    let (code, said) = runner.end();
    assert_eq!(code, Some(0));
    assert!(!said.join("\n").contains("a secret of the shop"), "{said:#?}");
    eventually("nobody listens", || deliver(address, "4", SIGNATURE).is_none());
}
