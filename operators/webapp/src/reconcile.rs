use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use watchkeeper::client::{self, Outcomes, key_of};
use watchkeeper::prelude::*;

use crate::desired::{self, INSTANCE, MANAGED_BY, MANAGER};
use crate::outlook::Outlook;
use crate::trouble::Trouble;
use crate::v1beta1::WebApp;

/// When to look again at what only others can mend, such as a quota, whose changes do not wake us.
const RETRY_DELAY: Duration = Duration::from_secs(30);

/// Adds the operator to a manager, with the definition of its kind.
#[must_use]
pub fn operator(manager: Manager) -> Manager {
    manager
        .install::<WebApp>()
        // Who owns which field is kept, so that not even the first apply after a start is sent where nothing differs.
        .cache(Cache::of::<Deployment>().keep_managed_fields())
        .cache(Cache::of::<Service>().keep_managed_fields())
        .cache(Cache::of::<Pod>().labels(format!("{MANAGED_BY}={MANAGER}")))
        .controller(
            Controller::of::<WebApp>()
                .filter(Predicate::generation_changed())
                .owns::<Deployment>()
                .owns::<Service>()
                .watches(|pod: &Pod| {
                    let app = pod.labels().get(INSTANCE)?;
                    Some(Key::new(pod.metadata.namespace.as_deref(), app))
                })
                .reconcile(reconcile),
        )
}

async fn reconcile(app: Arc<WebApp>, cx: Context<WebApp>) -> Result<Action> {
    let done = make_so(&app, &cx).await;
    if let Ok(outcomes) = &done {
        tell_changes(&cx, outcomes);
    }
    let refusal = done.as_ref().err().and_then(Trouble::of_write);
    report(&app, &cx, refusal.clone()).await?;
    match done {
        Ok(_) => Ok(Action::done()),
        // Nothing but another spec helps, and that wakes us.
        Err(error @ client::Error::Invalid { .. }) => Err(Error::terminal(error)),
        Err(error) if refusal.is_some() => Err(Error::from(error).retry_after(RETRY_DELAY)),
        Err(error) => Err(error.into()),
    }
}

/// Makes the children what they should be. What was added to them goes first: it may be what keeps an apply from being valid,
/// such as a second port of the same name.
async fn make_so(app: &WebApp, cx: &Context<WebApp>) -> Result<Outcomes, client::Error> {
    tidy(app, cx, desired::tidy_deployment).await?;
    tidy(app, cx, desired::tidy_service).await?;
    cx.children().apply([desired::deployment(app)]).apply([desired::service(app)]).await
}

async fn tidy<K: Kind>(
    app: &WebApp,
    cx: &Context<WebApp>,
    tidy: fn(&mut K, &WebApp),
) -> Result<(), client::Error> {
    let key = key_of(app);
    let Some(child) = cx.client().get::<K>(&key).await? else { return Ok(()) };
    let mut owners = child.meta().owner_references.iter().flatten();
    if owners.any(|owner| owner.controller == Some(true) && Some(&owner.uid) != app.metadata.uid.as_ref()) {
        return Ok(());
    }
    match cx.client().modify(&key, |child: &mut K| tidy(child, app)).await {
        Err(client::Error::NotFound { .. }) => Ok(()),
        done => done.map(drop),
    }
}

/// Writes into the status how it goes, and says what is news.
async fn report(app: &WebApp, cx: &Context<WebApp>, refusal: Option<Trouble>) -> Result<()> {
    let deployment = cx
        .client()
        .get::<Deployment>(&key_of(app))
        .await?
        .filter(|deployment| is_ours(app, &deployment.metadata));
    let trouble = match refusal {
        Some(refusal) => Some(refusal),
        None => trouble(app, cx, deployment.as_deref()).await?,
    };
    let outlook = Outlook::new(app, deployment.as_deref(), trouble);
    tell_outlook(app, cx, &outlook);
    let mut writer = cx.status().observed_generation().set(|app| {
        let (url, selector) = (desired::url(app), desired::selector(app));
        let status = app.status.get_or_insert_default();
        status.replicas = outlook.replicas;
        status.ready_replicas = outlook.ready;
        status.service_url = Some(url);
        status.selector = Some(selector);
    });
    for finding in outlook.conditions(app) {
        writer = writer.condition(finding);
    }
    match writer.await {
        // It went while we looked.
        Err(client::Error::NotFound { .. }) => Ok(()),
        written => written.map(drop).map_err(Error::from),
    }
}

/// What is wrong with the pods, or else with the Deployment. Pods know sooner and better.
async fn trouble(
    app: &WebApp,
    cx: &Context<WebApp>,
    deployment: Option<&Deployment>,
) -> Result<Option<Trouble>> {
    let pods = cx.client().list::<Pod>().in_namespace(app.namespace().unwrap_or_default());
    let mut pods = pods.labels(desired::selector(app)).await?;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    // Always the same one of several.
    pods.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    let found = pods.iter().find_map(|pod| Trouble::of_pod(pod));
    Ok(found.or_else(|| deployment.and_then(Trouble::of_deployment)))
}

fn tell_changes(cx: &Context<WebApp>, outcomes: &Outcomes) {
    let changes =
        [("Created", &outcomes.created), ("Updated", &outcomes.changed), ("Removed", &outcomes.pruned)];
    for (reason, children) in changes {
        for child in children {
            let note = format!("{reason} {} {}", child.kind, child.key.name());
            cx.event(Event::normal(format!("{}{reason}", child.kind), "Reconcile", note));
        }
    }
}

fn tell_outlook(app: &WebApp, cx: &Context<WebApp>, outlook: &Outlook) {
    let was = |kind: &str| {
        let mut conditions = app.status.iter().flat_map(|status| &status.conditions);
        conditions
            .find(|condition| condition.type_ == kind)
            .map(|condition| (&*condition.status, &*condition.reason))
    };
    if let Some(Trouble { reason, message }) = &outlook.trouble
        && was("Degraded") != Some(("True", reason))
    {
        cx.event(Event::warning(reason, "Reconcile", message));
    }
    if outlook.complete && was("Progressing").is_some_and(|(status, _)| status == "True") {
        let note = format!("{} replicas of {} are ready", app.spec.replicas, app.spec.image);
        cx.event(Event::normal("RolledOut", "Reconcile", note));
    }
}

fn is_ours(app: &WebApp, child: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> bool {
    child.owner_references.iter().flatten().any(|owner| Some(&owner.uid) == app.metadata.uid.as_ref())
}
