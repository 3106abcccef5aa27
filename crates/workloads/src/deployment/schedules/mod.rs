//! Rollouts under random schedules: what is decided on old news must not break what a Deployment promises.
//!
//! The decisions are those of the controllers; server, caches and pods are simulated. One step is one of: a cache hears of
//! one more change, a controller begins a reconcile or sends its next write, a pod becomes ready or fails, a user changes
//! the Deployment, all controllers are started again. After each, the server must have at least as many available pods, and
//! no more pods, than the Deployment says. What no controller could have prevented is allowed for: a pod that fails or is
//! deleted by hand is one less, and after a change of size the bounds are the wider ones, until all have come to rest.
//!
//! `WATCHKEEPER_SCHEDULES` sets how many schedules are tried, `WATCHKEEPER_SEED` repeats one and says what happened.

mod cluster;
mod objects;
mod simulation;

use objects::BROKEN;
use simulation::Simulation;

/// Steps from one rest to the next.
const STEPS: std::ops::RangeInclusive<usize> = 30..=200;
/// Rounds until all has to be at rest.
const ROUNDS: usize = 300;

/// How often each kind of step is taken. Different in each part of a schedule, so that everything is slow at times.
struct Pace([usize; 11]);

impl Pace {
    fn random(rng: &mut fastrand::Rng) -> Self {
        let mut often = |most: usize| 1 + rng.usize(0..most);
        let (hear, roll, look, ready, end, tick) =
            (often(40), often(12), often(40), often(12), often(6), often(4));
        let mut seldom = |one_in: u8| usize::from(rng.u8(0..one_in) == 0);
        let (template, scale, pause, lose, restart) = (seldom(2), seldom(4), seldom(4), seldom(4), seldom(4));
        Self([hear, roll, look, ready, end, tick, template, scale, pause, lose, restart])
    }

    fn step(&self, simulation: &mut Simulation) {
        let mut at = simulation.rng.usize(0..self.0.iter().sum());
        let is = |weight: &usize| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        };
        match self.0.iter().position(is) {
            Some(0) => {
                simulation.deliver();
            }
            Some(1) => simulation.step_deployment(),
            Some(2) => simulation.step_set(),
            Some(3) => {
                simulation.become_ready();
            }
            Some(4) => {
                simulation.end();
            }
            Some(5) => simulation.tick(),
            Some(6) => {
                let number = simulation.rng.u32(1..=BROKEN);
                simulation.set_template(number);
            }
            Some(7) => {
                let replicas = simulation.rng.i32(0..=10);
                simulation.scale(replicas);
            }
            Some(8) => {
                let paused = simulation.rng.bool();
                simulation.set_paused(paused);
            }
            Some(9) => simulation.lose(),
            _ => simulation.restart(),
        }
    }
}

/// Lets everything happen that can, until nothing does.
fn rest(simulation: &mut Simulation) -> Result<(), String> {
    let patience = 2 + simulation.web().spec.min_ready_seconds.unwrap_or(0);
    let mut quiet = 0;
    for _ in 0..ROUNDS {
        let before = simulation.versions();
        simulation.deliver_all();
        simulation.finish_all()?;
        while simulation.become_ready() || simulation.end() {
            simulation.check()?;
        }
        simulation.tick();
        simulation.check()?;
        quiet = if simulation.versions() == before { quiet + 1 } else { 0 };
        if quiet > patience {
            return Ok(());
        }
    }
    Err("it does not come to rest".into())
}

fn run(simulation: &mut Simulation) -> Result<(), String> {
    rest(simulation)?;
    for _ in 0..simulation.rng.usize(1..=3) {
        simulation.renew_promise();
        simulation.faulty = simulation.rng.u8(0..4) == 0;
        let pace = Pace::random(&mut simulation.rng);
        let number = simulation.rng.u32(1..=BROKEN);
        simulation.set_template(number);
        for _ in 0..simulation.rng.usize(STEPS) {
            pace.step(simulation);
            simulation.check()?;
        }
        simulation.faulty = false;
        rest(simulation)?;
    }
    // Whatever happened, a template that works is rolled out in the end.
    simulation.set_paused(false);
    simulation.set_template(1);
    rest(simulation)?;
    simulation.is_complete()
}

fn from_env<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

/// Tells how a schedule went that ended badly.
fn replay(seed: u64) -> String {
    let mut simulation = Simulation::new(seed, true);
    let bounds = simulation.bounds();
    let error = run(&mut simulation).err().unwrap_or_default();
    let trace = simulation.trace.take().unwrap_or_default();
    let last = trace.len().saturating_sub(60);
    format!("WATCHKEEPER_SEED={seed} repeats this, with {bounds:?}:\n{}\n{error}", trace[last..].join("\n"))
}

#[test]
fn a_rollout_stays_within_its_bounds_whatever_is_seen_when() {
    // A schedule is long, so it counts as ten.
    let schedules: u64 = from_env("WATCHKEEPER_SCHEDULES").unwrap_or(6_000) / 10;
    let one = from_env("WATCHKEEPER_SEED");
    let seeds = one.map_or(0..schedules, |seed: u64| seed..seed + 1);
    for seed in seeds {
        if run(&mut Simulation::new(seed, false)).is_err() {
            panic!("{}", replay(seed));
        }
    }
}
