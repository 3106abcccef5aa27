//! The operator of the book, typed as written: a package of its own that is made of the chapter's code.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// The blocks of code of a language, in order.
fn blocks<'a>(chapter: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    chapter.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
#[ignore = "compiles an operator with all that it depends on: a minute or two"]
fn the_operator_of_the_book_compiles_as_it_is_typed_and_its_test_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let chapter = fs::read_to_string(root.join("docs/book/operator.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let manifest =
        blocks(&chapter, "toml").concat().replace("../watchkeeper/", &format!("{}/", root.display()));
    let package = "[package]\nname = \"greeter\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n";
    fs::write(folder.path().join("Cargo.toml"), format!("{package}{manifest}")).unwrap();
    // The versions that everything else here is tested with.
    fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    let code = blocks(&chapter, "rust");
    // One block takes the place of an earlier one: the controller with a finalizer.
    let (with_finalizer, typed): (Vec<&str>, Vec<&str>) =
        code.into_iter().partition(|block| block.contains("say_goodbye"));
    assert_eq!(with_finalizer.len(), 1);
    fs::write(folder.path().join("src/main.rs"), typed.concat()).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--quiet"]).current_dir(folder.path()).env("CARGO_TARGET_DIR", &target);
    assert!(cargo.status().unwrap().success());

    let program = typed.concat();
    let (before, after) = (program.find("fn controller()").unwrap(), program.find("#[tokio::main]").unwrap());
    let finalized = format!("{}{}{}", &program[..before], with_finalizer[0], &program[after..]);
    fs::write(folder.path().join("src/main.rs"), finalized).unwrap();
    assert!(cargo.status().unwrap().success());
}
