//! The commands of a person, with the kubectl of this machine, if there is one.

use std::process::Stdio;

use tokio::process::Command;
use watchkeeper_testkit::TestEnv;
use watchkeeper_workloads::Timing;

use crate::place::Place;

async fn kubectl(place: &Place, line: &str) -> String {
    let output = Command::new("kubectl")
        .args(line.split_whitespace())
        .env("KUBECONFIG", place.env.kubeconfig())
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {line}\n{text}{error}");
    text
}

async fn is_installed() -> bool {
    let found = Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.await.is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_sees_life() {
    if !is_installed().await {
        return;
    }
    let env = TestEnv::builder().listening().start().await;
    let place = Place::over(env, Timing::default().scaled(0.3)).await;
    let run = |line: &'static str| kubectl(&place, line);

    assert!(run("get nodes").await.contains("Ready"));
    run("create deployment web --image=web:1 --replicas=3").await;
    let said = run("rollout status deployment/web --timeout=60s").await;
    assert!(said.contains("deployment \"web\" successfully rolled out"), "{said}");
    assert_eq!(run("get pods -l app=web").await.matches("1/1     Running").count(), 3);
    run("wait --for=condition=Ready pod -l app=web --timeout=60s").await;
    run("wait --for=condition=Available deployment/web --timeout=60s").await;

    run("set image deployment/web web=web:2").await;
    run("annotate deployment/web kubernetes.io/change-cause=second").await;
    run("rollout status deployment/web --timeout=60s").await;
    let history = run("rollout history deployment/web").await;
    assert!(history.contains("1         <none>") && history.contains("2         second"), "{history}");
    assert!(run("rollout history deployment/web --revision=1").await.contains("web:1"));
    run("rollout undo deployment/web").await;
    run("rollout status deployment/web --timeout=60s").await;
    let image = run("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}").await;
    assert_eq!(image, "web:1");
    run("rollout pause deployment/web").await;
    run("rollout resume deployment/web").await;
    run("rollout restart deployment/web").await;
    run("rollout status deployment/web --timeout=60s").await;
    let history = run("rollout history deployment/web").await;
    assert!(history.contains("4 "), "{history}");
    let described = run("describe deployment web").await;
    for part in ["ScalingReplicaSet", "NewReplicaSetAvailable", "MinimumReplicasAvailable"] {
        assert!(described.contains(part), "{part}\n{described}");
    }

    run("expose deployment web --port=80").await;
    run("scale deployment web --replicas=1").await;
    run("rollout status deployment/web --timeout=60s").await;
    run("wait --for=jsonpath={.subsets[0].addresses[0].ip} endpoints/web --timeout=60s").await;

    run("create job sum --image=sum:1").await;
    run("wait --for=condition=complete job/sum --timeout=60s").await;
    assert!(run("get job sum").await.contains("1/1"));
    run("run broken --image=web:does-not-exist").await;
    run("wait --for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff pod/broken --timeout=60s").await;
    assert!(run("get pod broken").await.contains("ImagePullBackOff"));
    run("delete pod broken").await;
    run("delete deployment web --cascade=foreground").await;
    assert!(!run("get pods").await.contains("web-"));
}
