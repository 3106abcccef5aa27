//! What a run can do for its own object, and for others.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event as Recorded;
use watchkeeper_client::{controller_of, key_of, ready};
use watchkeeper_core::Key;
use watchkeeper_events::Event;
use watchkeeper_runtime::{Action, Context, Controller, Manager, Result, Verbs};
use watchkeeper_testkit::fixtures::{Widget, config_map, widget};
use watchkeeper_testkit::{TestEnv, eventually};

/// Has a child of its own, gives its helper one, and tells about both.
async fn reconcile(widget: Arc<Widget>, cx: Context<Widget>) -> Result<Action> {
    assert!(Arc::ptr_eq(&widget, cx.object()));
    cx.children().apply([cx.named_after::<ConfigMap>("page")]).await?;
    cx.event(Event::normal("Own", "Test", "about the object"));
    let key = Key::new(Some("default"), "helper");
    if let Some(helper) = cx.client().get::<Widget>(&key).await?
        && key_of(&*widget) != key
    {
        cx.children_of(&*helper).apply([cx.named::<Secret>()]).await?;
        cx.status_of(&*helper).condition(ready("Helped")).await?;
        cx.event_for(&*helper, Event::normal("Other", "Test", "about another one"));
    }
    Ok(Action::done())
}

#[tokio::test(start_paused = true)]
async fn a_run_acts_for_its_own_object_unless_another_one_is_named() {
    let env = TestEnv::start().await;
    env.install::<Widget>().await;
    let controller = Controller::of::<Widget>()
        .owns::<ConfigMap>()
        .writes_status::<Widget>()
        .reads::<Secret>()
        .writes::<Secret>(Verbs::APPLY | Verbs::DELETE)
        .reconcile(reconcile);
    let running = Manager::new("test", env.connection()).controller(controller).start().await.unwrap();
    running.ready().await;
    let client = running.client();
    client.create(&config_map("unrelated", &[])).await.unwrap();
    client.create(&widget("helper", 1)).await.unwrap();
    client.create(&widget("a", 1)).await.unwrap();

    let owner_of_page = || async {
        let page = client.live().get::<ConfigMap>(&Key::new(Some("default"), "a-page")).await.unwrap()?;
        Some(controller_of(&*page)?.name.clone())
    };
    let owner_of_secret = || async {
        let secret = client.live().get::<Secret>(&Key::new(Some("default"), "a")).await.unwrap()?;
        Some(controller_of(&*secret)?.name.clone())
    };
    eventually(|| async { owner_of_page().await.as_deref() == Some("a") }).await;
    eventually(|| async { owner_of_secret().await.as_deref() == Some("helper") }).await;
    let conditions = |widget: Option<Arc<Widget>>| {
        widget.and_then(|widget| widget.status.clone()).map_or(0, |status| status.conditions.len())
    };
    let helped = || async { client.live().get(&Key::new(Some("default"), "helper")).await.unwrap() };
    eventually(|| async { conditions(helped().await) == 1 }).await;
    let own = client.live().get(&Key::new(Some("default"), "a")).await.unwrap();
    assert_eq!(conditions(own), 0);

    let told = || async {
        let events = client.live().list::<Recorded>().await.unwrap();
        let mut told: Vec<_> = events
            .iter()
            .map(|event| (event.reason.clone().unwrap(), event.regarding.clone().unwrap().name.unwrap()))
            .collect();
        told.sort();
        told
    };
    let all = [("Other", "helper"), ("Own", "a"), ("Own", "helper")];
    let all = all.map(|(reason, name)| (reason.to_owned(), name.to_owned()));
    eventually(|| async { told().await == all }).await;
    running.stop().await;
}
