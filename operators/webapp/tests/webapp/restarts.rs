use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use watchkeeper::prelude::ResourceExt;
use watchkeeper_testkit::fixtures::key;
use watchkeeper_testkit::{Outcome, consistently, eventually};
use watchkeeper_webapp::{Http, WebApp, WebAppSpec};

use crate::world::{World, is_operators, spec, webapp};

const APPS: usize = 200;
const SEEDS: u64 = 2;
/// What an operator is killed at.
const WORK: [&str; 3] = ["deployments", "services", "webapps"];

/// What a person does in one step.
fn next_step(random: &mut fastrand::Rng, there: &mut BTreeMap<String, WebAppSpec>, made: &mut usize) -> Step {
    let create = *made < APPS && (there.is_empty() || random.u8(0..10) < 5);
    if create {
        *made += 1;
        let name = format!("app-{made}");
        let spec = WebAppSpec { replicas: random.i32(1..=10), ..spec() };
        there.insert(name.clone(), spec.clone());
        return Step::Create(name, spec);
    }
    let Some(name) = random.choice(there.keys()).cloned() else { return Step::Nothing };
    match random.u8(0..10) {
        0..5 => {
            there.remove(&name);
            Step::Delete(name)
        }
        5..7 => {
            let spec = WebAppSpec { http: Http { port: random.i32(1..=65535) }, ..spec() };
            there.insert(name.clone(), spec.clone());
            Step::Edit(name, spec)
        }
        7 => Step::DeleteDeployment(name),
        8 => Step::DeleteService(name),
        _ => Step::Nothing,
    }
}

enum Step {
    Create(String, WebAppSpec),
    Edit(String, WebAppSpec),
    Delete(String),
    DeleteDeployment(String),
    DeleteService(String),
    Nothing,
}

async fn take(world: &World, step: Step) {
    let person = &world.person;
    match step {
        Step::Create(name, spec) => drop(person.create(&webapp(&name, spec)).await.unwrap()),
        Step::Edit(name, spec) => {
            drop(person.modify::<WebApp>(&key(&name), |app| app.spec = spec.clone()).await.unwrap());
        }
        Step::Delete(name) => drop(person.delete_key::<WebApp>(&key(&name)).await.unwrap()),
        // They may not be there yet.
        Step::DeleteDeployment(name) => drop(person.delete_key::<Deployment>(&key(&name)).await),
        Step::DeleteService(name) => drop(person.delete_key::<Service>(&key(&name)).await),
        Step::Nothing => {}
    }
}

/// Everything as declared, and nothing else.
async fn check(world: &World, there: &BTreeMap<String, WebAppSpec>) -> Result<(), String> {
    let deployments = world.person.live().list::<Deployment>().await.unwrap();
    let services = world.person.live().list::<Service>().await.unwrap();
    let apps = world.person.live().list::<WebApp>().await.unwrap();
    let names = |names: Vec<String>| {
        let mut names: Vec<String> = names.into_iter().filter(|name| name != "kubernetes").collect();
        names.sort();
        names
    };
    let mut wanted: Vec<String> = there.keys().cloned().collect();
    wanted.sort();
    let found = names(deployments.iter().map(|deployment| deployment.name_any()).collect());
    if found != wanted {
        return Err(format!("{} Deployments for {} WebApps", found.len(), wanted.len()));
    }
    let found = names(services.iter().map(|service| service.name_any()).collect());
    if found != wanted {
        return Err(format!("{} Services for {} WebApps", found.len(), wanted.len()));
    }
    for deployment in &deployments {
        let name = deployment.name_any();
        let spec = &there[&name];
        let app = apps.iter().find(|app| app.name_any() == name).ok_or("a WebApp is gone")?;
        let container = &deployment.spec.template.spec.as_ref().unwrap().containers[0];
        let port = container.ports.as_ref().unwrap()[0].container_port;
        let owner = &deployment.metadata.owner_references.as_ref().unwrap()[0];
        if (deployment.spec.replicas, port) != (Some(spec.replicas), spec.http.port) {
            return Err(format!("{name} is not as declared"));
        }
        if Some(&owner.uid) != app.metadata.uid.as_ref() {
            return Err(format!("{name} belongs to another"));
        }
        if app.status.as_ref().and_then(|status| status.observed_generation) != app.metadata.generation {
            return Err(format!("the status of {name} is old"));
        }
    }
    Ok(())
}

/// An operator that is killed again and again, each time after so many of its writes. From then on none of them reaches the
/// server; or all do, and it never hears of what it did.
async fn killed_at_random(seed: u64) {
    let world = World::new().await;
    let mut random = fastrand::Rng::with_seed(seed);
    let countdown = Arc::new(AtomicI64::new(i64::MAX));
    let (left, lose) = (Arc::clone(&countdown), random.bool());
    let _crash = world.env.fault(move |call| {
        let is_work = is_operators(call) && call.is_write() && WORK.contains(&&*call.resource);
        if !is_work || left.fetch_sub(1, Ordering::Relaxed) > 1 {
            return Outcome::pass();
        }
        if lose { Outcome::lose() } else { Outcome::refuse() }
    });
    let (mut there, mut made, mut kills) = (BTreeMap::new(), 0, 0);
    while made < APPS {
        countdown.store(random.i64(1..60), Ordering::Relaxed);
        let operator = world.operator().await;
        while made < APPS && countdown.load(Ordering::Relaxed) > 0 {
            let step = next_step(&mut random, &mut there, &mut made);
            take(&world, step).await;
            tokio::time::sleep(std::time::Duration::from_millis(random.u64(0..5))).await;
        }
        kills += 1;
        // Without a word, as SIGKILL does.
        drop(operator);
    }
    countdown.store(i64::MAX, Ordering::Relaxed);
    assert!(kills > 10, "killed only {kills} times");
    // What somebody did while the step was cut off is still to be declared.
    let apps = world.person.live().list::<WebApp>().await.unwrap();
    let there: BTreeMap<String, WebAppSpec> =
        apps.iter().map(|app| (app.name_any(), app.spec.clone())).collect();
    let operator = world.operator().await;
    eventually(|| check(&world, &there)).await;
    let before = world.env.request_count();
    consistently(|| async { world.sent(before, |call| call.is_write()) == 0 }).await;

    for name in there.keys() {
        world.person.delete_key::<WebApp>(&key(name)).await.unwrap();
    }
    let none = BTreeMap::new();
    eventually(|| check(&world, &none)).await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_hundred_webapps_and_an_operator_killed_at_random_end_as_declared() {
    for seed in 0..SEEDS {
        killed_at_random(seed).await;
    }
}
