//! The operator chapter of the book, typed as written into an empty folder: it compiles, its test passes, and it runs.

use std::fs;
use std::path::Path;

use crate::checkout;
use crate::project::Project;

/// The blocks of code of a language, in order.
fn blocks<'a>(chapter: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    chapter.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
#[ignore = "compiles a second operator; `make soak` runs it"]
fn the_operator_of_the_book_compiles_as_it_is_typed_and_runs() {
    let project = Project::empty("greeter");
    let root = checkout();
    let chapter = fs::read_to_string(Path::new(&root).join("docs/book/operator.md")).unwrap();
    let manifest = blocks(&chapter, "toml").concat().replace("../watchkeeper/", &format!("{root}/"));
    let package = "[package]\nname = \"greeter\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n";
    fs::write(project.folder.join("Cargo.toml"), format!("{package}{manifest}")).unwrap();
    // The versions that everything else here is tested with.
    fs::copy(Path::new(&root).join("Cargo.lock"), project.folder.join("Cargo.lock")).unwrap();
    fs::create_dir(project.folder.join("src")).unwrap();
    let code = blocks(&chapter, "rust");
    // One block takes the place of an earlier one: the controller with a finalizer.
    let (with_finalizer, typed): (Vec<&str>, Vec<&str>) =
        code.into_iter().partition(|block| block.contains("say_goodbye"));
    assert_eq!(with_finalizer.len(), 1);
    let program = typed.concat();
    let (before, after) = (program.find("fn controller()").unwrap(), program.find("#[tokio::main]").unwrap());
    let finalized = format!("{}{}{}", &program[..before], with_finalizer[0], &program[after..]);

    fs::write(project.folder.join("src/main.rs"), program).unwrap();
    project.run("cargo test --quiet");
    // From here on with the finalizer, which the chapter adds last.
    fs::write(project.folder.join("src/main.rs"), finalized).unwrap();

    let _server = project.start_until(
        "watchkeeper serve --in-memory --listen 127.0.0.1:0 --kubeconfig ./kubeconfig",
        "ready in",
    );
    let _operator = project.start("KUBECONFIG=./kubeconfig cargo run --quiet");
    let [greeting] = blocks(&chapter, "yaml")[..] else { panic!("the chapter applies one object") };
    fs::write(project.folder.join("greeting.yaml"), greeting).unwrap();
    let kubectl = |arguments: &str| {
        project.run_until_it_succeeds(&format!("kubectl --kubeconfig ./kubeconfig {arguments}"))
    };
    kubectl("apply -f greeting.yaml");
    let page = r"get configmap hello -o jsonpath='{.data.index\.html}'";
    assert_eq!(kubectl(page), "<h1>Hello</h1>");
    kubectl("delete configmap hello");
    assert_eq!(kubectl(page), "<h1>Hello</h1>", "it is back");
    kubectl("wait --for=condition=Ready --timeout=60s greeting hello");
    assert_eq!(kubectl("get greeting hello -o jsonpath='{.status.conditions[0].reason}'"), "PageWritten");
    kubectl("delete greeting hello --timeout=60s");
}
