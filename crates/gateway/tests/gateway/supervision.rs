//! Panics in the tasks of a gateway.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Bench, within};

fn answer(path: &str, body: &str) -> Value {
    json!({"rules": [{"matches": [{"path": {"prefix": path}}], "filters": {"respond": {"body": body}}}]})
}

#[tokio::test]
async fn every_task_goes_on_after_a_panic() {
    let bench = Bench::start().await;
    for task in ["configuration", "source test", "statuses", "informer test"] {
        assert!(bench.supervisor.tasks().contains(task), "{task}: {:?}", bench.supervisor.tasks());
        bench.supervisor.inject(task);
        within(task, async {
            while bench.supervisor.panics(task) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        bench.put("GatewayRoute", "r", answer("/", task)).await;
        assert_eq!(bench.get("/").await.text(), task);
    }
}

#[tokio::test]
async fn an_object_that_makes_the_compiler_panic_keeps_its_last_good_form_and_costs_no_other() {
    let bench = Bench::start().await;
    bench.put("GatewayRoute", "bad", answer("/bad", "before")).await;
    let place = "test: GatewayRoute/bad";
    bench.supervisor.poison(place);
    bench.tell("GatewayRoute", "bad", answer("/bad", "after"));
    bench.put("GatewayRoute", "good", answer("/good", "good")).await;
    assert_eq!(bench.get("/bad").await.text(), "before");
    assert_eq!(bench.get("/good").await.text(), "good");
    assert_eq!(bench.supervisor.panics("configuration"), 1);
    assert!(bench.handle.rejected().contains_key(place), "{:?}", bench.handle.rejected());
    assert!(bench.handle.readiness().0, "one object does not make a gateway unfit");
}

#[tokio::test]
async fn readiness_names_a_task_that_does_not_recover_and_requests_are_served_meanwhile() {
    let bench = Bench::start().await;
    bench.put("GatewayRoute", "r", answer("/", "served")).await;
    bench.supervisor.break_down("configuration");
    let failing = async {
        while bench.handle.readiness().0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("the task to fail", failing).await;
    let (_, notes) = bench.handle.readiness();
    assert!(notes.iter().any(|note| note.contains("task configuration")), "{notes:?}");
    assert_eq!(bench.get("/").await.text(), "served");
    bench.supervisor.mend("configuration");
    bench.put("GatewayRoute", "r", answer("/", "again")).await;
    assert_eq!(bench.get("/").await.text(), "again");
}
