//! What the compiler says to those who make the usual mistakes. `TRYBUILD=overwrite` writes the answers anew.

#[test]
#[ignore = "the answers are those of Rust 1.95, and the framework is built anew; `make soak` runs it"]
fn usual_mistakes_are_told_with_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/compile/*.rs");
}
