//! An election whose task panics.

use std::time::Duration;

use watchkeeper_election::{Election, ElectionEvent, ElectionOptions, LeaseName};
use watchkeeper_supervision::Supervisor;
use watchkeeper_testkit::TestEnv;

async fn next_term(election: &mut Election) -> watchkeeper_election::Leadership {
    loop {
        if let ElectionEvent::Leading(leadership) = election.next().await.unwrap() {
            return leadership;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_panics_has_lost_and_stands_again() {
    let (env, supervisor) = (TestEnv::start().await, Supervisor::default());
    let mut options = ElectionOptions::default();
    options.supervisor = supervisor.clone();
    let name = LeaseName::new("default", "test");
    let mut election = Election::start(env.connection(), name, options).unwrap();
    let first = next_term(&mut election).await;
    supervisor.inject("election");
    let event = election.next().await;
    assert!(matches!(event, Some(ElectionEvent::Lost(_))), "{event:?}");
    assert!(!first.is_held());
    let second = tokio::time::timeout(Duration::from_secs(60), next_term(&mut election)).await.unwrap();
    assert!(second.is_held());
    assert_eq!((first.term(), second.term()), (1, 2));
    assert_eq!(supervisor.panics("election"), 1);
    tokio::time::timeout(Duration::from_secs(60), election.release()).await.unwrap();
}
