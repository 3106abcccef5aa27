//! What was delivered, over restarts and kills.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::place::{Place, Runner, eventually};

const LOG: &str = r#"  - name: log
    on: routes
    concurrency: 3
    do: {shell: 'n=$(sed "s/.*size..\([0-9]*\).*/\1/"); echo "$WATCHKEEPER_NAME $WATCHKEEPER_EVENT $n" >> log'}
"#;

fn run(place: &Place) -> Runner {
    let mut command = place.command(&["--state", "state"]);
    command.current_dir(place.path(""));
    Runner::start(command)
}

#[test]
fn what_was_delivered_is_not_delivered_again_and_what_changed_meanwhile_is() {
    let place = Place::new(LOG);
    for name in ["a", "b", "c", "d"] {
        place.route(name, 1);
    }
    let mut runner = run(&place);
    let first = ["a added 1", "b added 1", "c added 1", "d added 1"];
    place.has("log", &first);
    for _ in first {
        runner.says("done in");
    }
    runner.signal("TERM");
    assert_eq!(runner.end().0, Some(0));

    place.route("a", 2);
    place.remove("b");
    place.route("e", 1);
    let mut runner = run(&place);
    let second = ["a changed 2", "b gone 1", "e added 1"];
    place.has("log", &[&first[..], &second].concat());
    for _ in second {
        runner.says("done in");
    }
    runner.kill();

    // Nothing changed, nothing is done, however it ended.
    let mut command = place.command(&["--state", "state", "--once"]);
    command.current_dir(place.path(""));
    let mut runner = Runner::start(command);
    let (code, said) = runner.end();
    assert_eq!(code, Some(0));
    assert!(said.iter().any(|line| line.contains("done: 0, filtered: 0, failed: 0")), "{said:#?}");
    place.has("log", &[&first[..], &second].concat());
}

#[test]
fn what_failed_is_delivered_after_a_restart() {
    let place = Place::new(
        r#"  - name: one
    on: routes
    do: {shell: 'echo "one $WATCHKEEPER_EVENT" >> log'}
  - name: two
    on: routes
    do: {shell: 'echo "two $WATCHKEEPER_EVENT" >> log; test -e allowed'}
    retry: {initial: 1h, max: 1h}
"#,
    );
    place.route("a", 1);
    let mut runner = run(&place);
    place.has("log", &["one added", "two added"]);
    runner.says("two: added a: failed");
    eventually("the other one", || runner.said().iter().any(|line| line.contains("one: added a: done")));
    runner.kill();
    place.write("allowed", "");
    let mut runner = run(&place);
    runner.says("two: added a: done in ");
    place.has("log", &["one added", "two added", "two added"]);
    runner.kill();
}

/// As on a disk that is full for a while: the end of a record does not fit.
#[test]
fn a_state_file_that_had_no_room_for_a_record_is_read_after_a_restart() {
    let place = Place::new(
        "  - {name: log, on: routes, do: {shell: 'echo \"$WATCHKEEPER_NAME $WATCHKEEPER_EVENT\" >> log'}}\n",
    );
    place.route("a", 1);
    place.route("b", 1);
    let inner = place.command(&["--state", "state"]);
    let mut command = Command::new("sh");
    // A file that would become too large is an error then, rather than the end of the process.
    command.args(["-c", r#"trap '' XFSZ; exec "$0" "$@""#]).arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).current_dir(place.path(""));
    let mut runner = Runner::start(command);
    runner.says("done in");
    runner.says("done in");
    let limit = |bytes: Option<u64>| {
        let process = rustix::process::Pid::from_raw(runner.id().try_into().unwrap());
        let limit = rustix::process::Rlimit { current: bytes, maximum: None };
        rustix::process::prlimit(process, rustix::process::Resource::Fsize, limit).unwrap();
    };
    let whole = place.path("state").metadata().unwrap().len();
    limit(Some(whole + 20));
    place.route("a", 2);
    runner.says("the state file cannot be written, after a restart this is delivered again");
    limit(None);
    place.route("b", 2);
    runner.says("changed b: done in");
    runner.kill();
    let delivered = ["a added", "b added", "a changed", "b changed"];
    place.has("log", &delivered);

    let mut runner = run(&place);
    runner.says("changed a: done in");
    runner.signal("TERM");
    assert_eq!(runner.end().0, Some(0));
    place.has("log", &[&delivered[..], &["a changed"]].concat());
}

/// Three objects come, change and go all the time, while the reactor is killed again and again.
#[test]
fn killed_at_any_time_it_delivers_everything_at_least_once_and_in_order() {
    let place = Place::new(LOG);
    let mut truth: BTreeMap<String, Option<u64>> = BTreeMap::new();
    let mut size = 0;
    let mut random = 17_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for round in 0..8 {
        let mut runner = run(&place);
        for _ in 0..60 {
            let name = format!("r{}", next(6));
            size += 1;
            if next(5) == 0 && truth.get(&name).copied().flatten().is_some() {
                place.remove(&name);
                truth.insert(name, None);
            } else {
                place.route(&name, size);
                truth.insert(name, Some(size));
            }
            std::thread::sleep(Duration::from_millis(next(12)));
        }
        // In the middle of it, but for the last one.
        if round < 7 {
            runner.kill();
            continue;
        }
        let begun = std::time::Instant::now();
        eventually("the last states", || {
            let log = place.lines("log");
            assert!(begun.elapsed().as_secs() < 30, "{truth:?}\n{log:#?}\n{:#?}", runner.said());
            let mut last: BTreeMap<&str, (&str, u64)> = BTreeMap::new();
            for line in &log {
                let words: Vec<&str> = line.split(' ').collect();
                last.insert(words[0], (words[1], words[2].parse().unwrap()));
            }
            truth.iter().all(|(name, state)| match (last.get(name.as_str()), state) {
                (Some((event, size)), Some(wanted)) => *event != "gone" && size == wanted,
                (Some((event, _)), None) => *event == "gone",
                // One that was never seen while it was there.
                (None, state) => state.is_none(),
            })
        });
    }
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let log = place.lines("log");
    for line in &log {
        let words: Vec<&str> = line.split(' ').collect();
        let size: u64 = words[2].parse().unwrap();
        if words[1] == "gone" {
            // With the last state of which it is known that it was delivered, and a newer one may have been.
            continue;
        }
        let before = seen.insert(words[0].to_owned(), size).unwrap_or(0);
        let of_it = log.iter().filter(|line| line.starts_with(words[0]));
        assert!(
            size >= before,
            "{} went back from {before} to {size}: {:#?}",
            words[0],
            of_it.collect::<Vec<_>>()
        );
    }
    assert!(log.len() > 50, "{}", log.len());
}
