//! What the compiler says to those who make the usual mistakes. `TRYBUILD=overwrite` writes the answers anew.

#[test]
#[ignore = "the answers are not recorded yet: TRYBUILD=overwrite cargo test -p watchkeeper-macros --test compile -- --ignored"]
fn usual_mistakes_are_told_with_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/compile/*.rs");
}
