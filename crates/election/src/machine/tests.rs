//! Candidates on a simulated server, network and clock.

use serde_json::{Value, json};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn options(identity: &str, seed: u64) -> ElectionOptions {
    ElectionOptions { identity: identity.into(), seed, ..ElectionOptions::default() }
}

fn machine(identity: &str) -> Machine {
    Machine::new(LeaseName::new("default", "l"), &options(identity, 1))
}

fn lease(holder: &str, seconds: u64, stamp: &str, version: u64) -> Lease {
    Lease::new(json!({
        "metadata": {"resourceVersion": version.to_string()},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": stamp, "leaseTransitions": 1},
    }))
}

fn found(lease: Lease) -> Input {
    Input::Answered(Answer::Found(Some(lease)))
}

/// A machine that leads since `now`, having sent its claim at `sent`.
fn leader(sent: Moment, now: Moment) -> Machine {
    let mut machine = machine("me");
    assert!(matches!(machine.step(sent, "s0", Input::Wake), Action::Read { .. }));
    let Action::Create { lease, .. } = machine.step(sent, "s0", Input::Answered(Answer::Found(None))) else {
        panic!("nothing is created")
    };
    machine.step(now, "s1", Input::Answered(Answer::Written(lease)));
    assert_eq!(machine.take_notes(), [Note::Standby(None), Note::Leading]);
    machine
}

#[test]
fn the_term_counts_from_when_the_claim_was_sent() {
    let machine = leader(SECOND * 100, SECOND * 103);
    assert_eq!(machine.held_until(), Some(SECOND * 115));
}

#[test]
fn a_lease_is_judged_by_when_it_was_seen_to_change_never_by_its_dates() {
    let mut machine = machine("me");
    machine.step(Moment::ZERO, "s", Input::Wake);
    let held = || found(lease("other", 15, "1970-01-01T00:00:00.000000Z", 7));
    let mut now = SECOND * 5;
    // Long expired by its date, but nobody has watched it for long enough.
    let mut action = machine.step(now, "s", held());
    while now < SECOND * 20 {
        let Action::Wait { until } = action else { panic!("{action:?} at {now:?}") };
        now = until;
        action = machine.step(now, "s", Input::Wake);
        if matches!(action, Action::Read { .. }) {
            action = machine.step(now, "s", held());
        }
    }
    assert_eq!(now, SECOND * 20);
    let Action::Replace { lease, .. } = action else { panic!("{action:?}") };
    assert_eq!(
        (lease.holder(), lease.clone().into_json()["spec"]["leaseTransitions"].as_i64()),
        (Some("me"), Some(2))
    );
}

#[test]
fn a_released_lease_is_taken_as_soon_as_it_is_sighted() {
    let mut machine = machine("me");
    machine.step(Moment::ZERO, "s", Input::Wake);
    assert!(matches!(
        machine.step(Moment::ZERO, "s", found(lease("other", 15, "x", 7))),
        Action::Wait { .. }
    ));
    let action = machine.step(SECOND, "s", Input::Sighted(Some(lease("", 1, "y", 8))));
    assert!(matches!(action, Action::Replace { .. }), "{action:?}");
}

#[test]
fn a_deleted_lease_is_respected_until_it_would_have_run_out() {
    let mut machine = machine("me");
    machine.step(Moment::ZERO, "s", Input::Wake);
    machine.step(Moment::ZERO, "s", found(lease("other", 15, "x", 7)));
    let Action::Wait { until } = machine.step(SECOND, "s", Input::Sighted(None)) else { panic!() };
    assert!(until <= SECOND * 15);
    let mut now = until;
    let mut action = machine.step(now, "s", Input::Wake);
    while now < SECOND * 15 {
        if matches!(action, Action::Read { .. }) {
            action = machine.step(now, "s", Input::Answered(Answer::Found(None)));
        }
        if let Action::Wait { until } = action {
            now = until;
            action = machine.step(now, "s", Input::Wake);
        }
        assert!(!matches!(action, Action::Create { .. }) || now >= SECOND * 15, "too early: {now:?}");
    }
}

#[test]
fn a_renewal_whose_answer_was_lost_counts_once_it_is_found() {
    let mut machine = leader(Moment::ZERO, Moment::ZERO);
    let Action::Replace { lease, .. } = machine.step(SECOND * 2, "s2", Input::Wake) else { panic!() };
    let lost = Answer::Failed { why: "reset".into(), timed_out: true };
    assert!(matches!(machine.step(SECOND * 3, "s3", Input::Answered(lost)), Action::Replace { .. }));
    assert!(matches!(machine.step(SECOND * 3, "s3", Input::Answered(Answer::Conflict)), Action::Read { .. }));
    let action = machine.step(SECOND * 3, "s4", found(lease));
    assert_eq!(action, Action::Wait { until: SECOND * 4 });
    assert_eq!(machine.held_until(), Some(SECOND * 17));
    assert_eq!(machine.metrics().slow_renewals, 1);
}

#[test]
fn a_namesake_is_somebody_else() {
    let mut machine = leader(Moment::ZERO, Moment::ZERO);
    machine.step(SECOND * 2, "s2", Input::Wake);
    machine.step(SECOND * 2, "s2", Input::Answered(Answer::Conflict));
    machine.step(SECOND * 2, "s2", found(lease("me", 15, "not mine", 9)));
    assert_eq!(machine.held_until(), None);
    let taken = Note::Lost(Loss::Taken { by: Some("me".into()) });
    assert_eq!(machine.take_notes(), [taken, Note::Standby(Some("me".into()))]);
}

#[test]
fn an_answer_after_the_end_of_the_lease_begins_a_new_term() {
    let mut machine = leader(Moment::ZERO, Moment::ZERO);
    let Action::Replace { lease, .. } = machine.step(SECOND * 9, "s2", Input::Wake) else { panic!() };
    machine.step(SECOND * 16, "s3", Input::Answered(Answer::Written(lease)));
    assert_eq!(machine.take_notes(), [Note::Lost(Loss::NotRenewed { last: None }), Note::Leading]);
    assert_eq!(machine.metrics().terms, 2);
}

#[test]
fn a_release_that_meets_a_conflict_reads_and_tries_again() {
    let mut machine = leader(Moment::ZERO, Moment::ZERO);
    let Action::Replace { lease, .. } = machine.step(SECOND, "s2", Input::Release) else { panic!() };
    assert_eq!((lease.holder(), lease.duration()), (None, SECOND));
    assert!(matches!(machine.step(SECOND, "s3", Input::Answered(Answer::Conflict)), Action::Read { .. }));
    let edited = machine.seen.as_ref().unwrap().lease.clone();
    let action = machine.step(SECOND, "s3", found(edited));
    let Action::Replace { lease, .. } = action else { panic!("{action:?}") };
    assert_eq!(machine.step(SECOND, "s4", Input::Answered(Answer::Written(lease))), Action::End);
}

/// A server, and requests and answers on their way.
struct World {
    random: fastrand::Rng,
    now: Moment,
    version: u64,
    stored: Option<Value>,
    machines: Vec<Machine>,
    /// Per machine: when it goes on, with what.
    coming: Vec<(Moment, Option<Input>)>,
    /// Writes that reach the server later.
    under_way: Vec<(Moment, Action)>,
}

impl World {
    fn new(seed: u64, candidates: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let name = LeaseName::new("default", "l");
        let machines = (0..candidates)
            .map(|number| Machine::new(name.clone(), &options(&format!("c{number}"), random.u64(..))))
            .collect();
        let coming =
            (0..candidates).map(|_| (Moment::from_millis(random.u64(0..3_000)), Some(Input::Wake))).collect();
        Self { random, now: Moment::ZERO, version: 0, stored: None, machines, coming, under_way: Vec::new() }
    }

    fn serve(&mut self, action: &Action) -> Answer {
        match action {
            Action::Read { .. } => Answer::Found(self.stored.clone().map(Lease::new)),
            Action::Create { lease, .. } if self.stored.is_none() => self.store(lease),
            Action::Replace { lease, .. } => {
                let based_on = lease.clone().into_json()["metadata"]["resourceVersion"].clone();
                match &self.stored {
                    Some(stored) if stored["metadata"]["resourceVersion"] == based_on => self.store(lease),
                    _ => Answer::Conflict,
                }
            }
            _ => Answer::Conflict,
        }
    }

    fn store(&mut self, lease: &Lease) -> Answer {
        self.version += 1;
        let mut object = lease.clone().into_json();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.stored = Some(object.clone());
        Answer::Written(Lease::new(object))
    }

    fn later(&mut self, millis: u64) -> Moment {
        self.now + Moment::from_millis(self.random.u64(0..=millis))
    }

    /// Sends a request into a bad network: it may be slow, late, lost, and so may its answer.
    fn send(&mut self, number: usize, action: Action, timeout: Duration) {
        let fate = self.random.u8(0..20);
        let failed = |why: &str, timed_out| Input::Answered(Answer::Failed { why: why.into(), timed_out });
        self.coming[number] = match fate {
            0 => (self.now, Some(failed("refused", false))),
            1 => {
                // On its way for longer than anybody waits, but it arrives.
                let arrival = self.now + timeout + Moment::from_millis(self.random.u64(0..8_000));
                self.under_way.push((arrival, action));
                (self.now + timeout, Some(failed("time-out", true)))
            }
            2 => {
                self.serve(&action);
                (self.later(500), Some(failed("reset", false)))
            }
            _ => {
                let answer = self.serve(&action);
                let slow = if fate < 5 { 4_500 } else { 50 };
                (self.later(slow).min(self.now + timeout), Some(Input::Answered(answer)))
            }
        };
    }

    fn run(&mut self, until: Moment) -> (usize, usize) {
        let (mut led, mut terms) = (0, 0);
        while self.now < until {
            let arrival = self.under_way.iter().map(|(at, _)| *at).min().unwrap_or(Moment::MAX);
            let number = (0..self.coming.len()).min_by_key(|number| self.coming[*number].0).unwrap();
            if arrival <= self.coming[number].0 {
                self.now = self.now.max(arrival);
                let index = self.under_way.iter().position(|(at, _)| *at == arrival).unwrap();
                let (_, action) = self.under_way.swap_remove(index);
                self.serve(&action);
                continue;
            }
            self.now = self.now.max(self.coming[number].0);
            // Now and then a candidate stands still, in the middle of whatever it was doing.
            if self.random.u16(0..400) == 0 {
                self.coming[number].0 = self.now + Moment::from_millis(self.random.u64(0..40_000));
                continue;
            }
            let input = self.coming[number].1.take().unwrap_or(Input::Wake);
            let stamp = format!("{:?}/{number}", self.now);
            let action = self.machines[number].step(self.now, &stamp, input);
            terms += self.machines[number].take_notes().iter().filter(|note| **note == Note::Leading).count();
            match action {
                Action::Wait { until } => self.coming[number] = (until, None),
                Action::Read { timeout }
                | Action::Create { timeout, .. }
                | Action::Replace { timeout, .. } => self.send(number, action, timeout),
                Action::End => unreachable!("nobody releases"),
            }
            let holders =
                self.machines.iter().filter(|machine| machine.held_until().is_some_and(|end| self.now < end));
            let holders: Vec<&str> = holders.map(|machine| machine.identity.as_str()).collect();
            assert!(holders.len() <= 1, "{holders:?} at {:?}", self.now);
            led += holders.len();
        }
        (led, terms)
    }
}

#[test]
fn there_are_never_two_leaders_in_a_bad_world() {
    let (mut led, mut terms) = (0, 0);
    for seed in 0..400 {
        let candidates = if seed % 2 == 0 { 2 } else { 5 };
        let (steps, new) = World::new(seed, candidates).run(SECOND * 600);
        led += steps;
        terms += new;
    }
    // They do get something done, and the leader does change.
    assert!(led > 10_000 && terms > 1_000, "{led} steps with a leader in {terms} terms");
}

#[test]
fn a_lease_that_says_it_lasts_for_ever_is_respected() {
    let mut machine = machine("me");
    machine.step(Moment::ZERO, "s", Input::Wake);
    let action = machine.step(SECOND, "s", found(lease("other", u64::MAX, "s", 7)));
    assert!(matches!(action, Action::Wait { .. }), "{action:?}");
}

#[test]
fn a_candidate_that_begins_again_does_not_take_its_old_lease_for_its_own() {
    let mut machine = leader(SECOND * 100, SECOND * 101);
    let Action::Replace { lease, .. } = machine.step(SECOND * 103, "s2", Input::Wake) else {
        panic!("no renewal")
    };
    machine.begin_again(&options("me", 1), true);
    assert!(matches!(machine.take_notes().as_slice(), [Note::Lost(_)]));
    assert_eq!((machine.held_until(), machine.metrics().terms), (None, 1));
    machine.step(SECOND * 104, "s3", Input::Wake);
    let action = machine.step(SECOND * 104, "s3", found(lease));
    assert!(matches!(action, Action::Wait { .. }), "{action:?}");
}
