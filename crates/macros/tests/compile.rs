//! What the compiler says to those who make the usual mistakes. `TRYBUILD=overwrite` writes the answers anew.

/// The compiler whose answers are recorded. Others word some of them in another way.
const RECORDED: &str = "rustc 1.95.";

#[test]
#[ignore = "the framework is built anew; `make soak` runs it"]
fn usual_mistakes_are_told_with_what_to_do() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = std::process::Command::new(rustc).arg("--version").output().expect("a compiler").stdout;
    let version = String::from_utf8_lossy(&version);
    if !version.starts_with(RECORDED) {
        eprintln!("NOT RUN: the answers are those of {RECORDED}x, and this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/compile/*.rs");
}
