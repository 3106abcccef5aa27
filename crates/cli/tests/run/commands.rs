//! Reactions that are commands.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::place::{Place, eventually, is_alive};

#[test]
fn a_command_gets_the_object_and_the_change() {
    let place = Place::new(
        r#"  - name: note
    on: routes
    do:
      command:
        run: [/bin/sh, ./note.sh, "${.spec.size}", "${event}"]
        env: {SIZE: "size ${.spec.size:-none}"}
"#,
    );
    place.write(
        "note.sh",
        r#"old=none; [ -n "$WATCHKEEPER_OLD_FILE" ] && old=$(cat "$WATCHKEEPER_OLD_FILE")
new=none; [ -n "$WATCHKEEPER_NEW_FILE" ] && new=$(cat "$WATCHKEEPER_NEW_FILE")
echo "$1 $2 $SIZE $WATCHKEEPER_EVENT $WATCHKEEPER_SOURCE/$WATCHKEEPER_REACTION/$WATCHKEEPER_KEY/$WATCHKEEPER_NAMESPACE/$WATCHKEEPER_NAME $WATCHKEEPER_ATTEMPT" >> notes
echo "$(cat) | $old | $new" >> states
"#,
    );
    place.route("a", 1);
    let mut runner = place.run(&[]);
    let state = |size: u8| {
        format!(
            r#"{{"apiVersion":"example.com/v1","kind":"Route","metadata":{{"name":"a"}},"spec":{{"size":{size}}}}}"#
        )
    };
    let mut notes = vec!["1 added size 1 added routes/note/a//a 1"];
    place.has("notes", &notes);
    place.route("a", 2);
    notes.push("2 changed size 2 changed routes/note/a//a 1");
    place.has("notes", &notes);
    place.remove("a");
    notes.push("2 gone size 2 gone routes/note/a//a 1");
    place.has("notes", &notes);
    eventually("all states", || place.lines("states").len() == 3);
    let (one, two) = (state(1), state(2));
    assert_eq!(
        place.lines("states"),
        [format!("{one} | none | {one}"), format!("{two} | {one} | {two}"), format!("{two} | {two} | none")]
    );
    runner.signal("TERM");
    let (code, said) = runner.end();
    assert_eq!(code, Some(0));
    assert!(said.iter().any(|line| line.contains("INFO note: added a: done in ")), "{said:#?}");
    let left: Vec<_> =
        std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("watchkeeper-run")), "{left:?}");
}

#[test]
fn a_command_that_fails_is_tried_again_later_and_later() {
    let place = Place::new(
        r#"  - name: stubborn
    on: routes
    do: {shell: 'echo "$WATCHKEEPER_ATTEMPT $(date +%s%N)" >> tries; echo no luck >&2; [ "$WATCHKEEPER_ATTEMPT" -ge 5 ]'}
    retry: {initial: 100ms, max: 10s}
"#,
    );
    place.route("a", 1);
    let runner = place.run(&[]);
    runner.says("stubborn: a | no luck");
    runner.says("WARN stubborn: added a: failed: exit code 1; trying again in ");
    runner.says("WARN stubborn: added a: failed 2 times: exit code 1; trying again in ");
    runner.says("INFO stubborn: added a: done in ");
    let tries = place.lines("tries");
    let read = |line: &String| {
        line.split_once(' ').map(|(n, at)| (n.parse::<u64>().unwrap(), at.parse::<u64>().unwrap()))
    };
    let tries: Vec<(u64, u64)> = tries.iter().map(|line| read(line).unwrap()).collect();
    assert_eq!(tries.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    // Half of each wait is left to chance: 50-100, 100-200, 200-400 and 400-800 ms.
    let gap = |at: usize| Duration::from_nanos(tries[at].1 - tries[at - 1].1);
    assert!(gap(1) >= Duration::from_millis(50) && gap(4) >= Duration::from_millis(400), "{tries:?}");
}

#[test]
fn a_change_that_was_given_up_is_tried_again_when_the_object_changes() {
    let place = Place::new(
        r#"  - name: picky
    on: routes
    do: {shell: 'echo "$WATCHKEEPER_EVENT $WATCHKEEPER_NAME" >> tries; grep -q size.:7'}
    retry: {initial: 10ms, max: 20ms, attempts: 2}
"#,
    );
    place.route("a", 1);
    let runner = place.run(&[]);
    runner.says("ERROR picky: added a: failed: exit code 1; not tried again before it changes");
    place.has("tries", &["added a", "added a"]);
    place.route("a", 7);
    // It was never told, so that it is still new.
    runner.says("INFO picky: added a: done in ");
    place.has("tries", &["added a", "added a", "added a"]);
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_all_its_processes() {
    let place = Place::new(
        r#"  - name: slow
    on: routes
    do: {shell: 'trap "" TERM; sleep 300 & echo $! > child; echo $$ > leader; sleep 300; sleep 300'}
    timeout: 500ms
    retry: {initial: 1h, max: 1h}
"#,
    );
    place.route("a", 1);
    let runner = place.run(&[]);
    eventually("the child", || !place.lines("child").is_empty() && !place.lines("leader").is_empty());
    let (child, leader) = (place.lines("child").remove(0), place.lines("leader").remove(0));
    assert!(is_alive(&child) && is_alive(&leader));
    runner.says("slow: added a: failed: did not end within 500ms and was killed; trying again in ");
    assert!(!is_alive(&leader), "the leader is left");
    eventually("the end of the child", || !is_alive(&child));
}

#[test]
fn a_command_may_leave_its_input_and_print_megabytes() {
    let place = Place::new(
        r#"  - name: deaf
    on: routes
    do: {shell: 'exec < /dev/null; head -c 5000000 /dev/zero | tr "\0" x; seq 1 200000 >&2'}
"#,
    );
    // More than a pipe holds.
    let filler = "y".repeat(1_000_000);
    place.write(
        "routes/a.yaml",
        &format!("{{apiVersion: example.com/v1, kind: Route, metadata: {{name: a}}, filler: {filler}}}"),
    );
    let mut runner = place.run(&[]);
    runner.says("deaf: added a: done in ");
    runner.signal("INT");
    let (code, said) = runner.end();
    assert_eq!(code, Some(0));
    let length: usize = said.iter().map(String::len).sum();
    assert!(length < 2_000_000, "{length}");
    assert!(
        said.iter().any(|line| line.contains("deaf: a | ... and 4999000 bytes more")),
        "{}",
        said.last().unwrap()
    );
    assert!(!said.iter().any(|line| line.contains("yyyy")));
}

#[test]
fn objects_are_handled_side_by_side_and_each_in_order() {
    let place = Place::new(
        r#"  - name: log
    on: routes
    concurrency: 4
    do: {shell: 'n=$(sed "s/.*size..\([0-9]*\).*/\1/"); echo "begin $WATCHKEEPER_NAME $n" >> log; sleep 0.0$((n % 5)); echo "end $WATCHKEEPER_NAME $n" >> log'}
"#,
    );
    let runner = place.run(&[]);
    runner.says("routes: 0 objects");
    let names = ["a", "b", "c", "d", "e", "f"];
    for size in 1..=40 {
        for name in names {
            place.route(name, size);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    eventually("the last of each", || {
        let log = place.lines("log");
        names.iter().all(|name| log.contains(&format!("end {name} 40")))
    });
    let (mut running, mut seen, mut side_by_side) = (HashMap::new(), HashMap::new(), 0);
    for line in place.lines("log") {
        let words: Vec<&str> = line.split(' ').collect();
        let (name, size) = (words[1].to_owned(), words[2].parse::<u64>().unwrap());
        if words[0] == "begin" {
            assert_eq!(running.insert(name.clone(), size), None, "two runs of {name}");
            assert!(seen.insert(name.clone(), size).unwrap_or(0) < size, "{name} went back to {size}");
            side_by_side = side_by_side.max(running.len());
        } else {
            assert_eq!(running.remove(&name), Some(size));
        }
    }
    assert!((2..=4).contains(&side_by_side), "{side_by_side} at a time");
}

#[test]
fn a_reactor_that_is_stopped_lets_what_runs_end() {
    let place = Place::new(
        r#"  - name: slow
    on: routes
    do: {shell: 'echo begun >> log; sleep 1; echo ended >> log'}
"#,
    );
    place.route("a", 1);
    place.route("b", 1);
    let mut runner = place.run(&[]);
    place.has("log", &["begun"]);
    runner.signal("TERM");
    let (code, said) = runner.end();
    assert_eq!(code, Some(0), "{said:#?}");
    // The other one was not begun.
    place.has("log", &["begun", "ended"]);
    assert!(said.iter().any(|line| line.contains("waiting for 1 that still run")), "{said:#?}");
}

#[test]
fn a_second_signal_aborts_what_runs() {
    let place = Place::new(
        r#"  - name: slow
    on: routes
    do: {shell: 'sleep 300 & echo $! > child; wait'}
    timeout: 1h
"#,
    );
    place.route("a", 1);
    let mut runner = place.run(&[]);
    eventually("the child", || !place.lines("child").is_empty());
    let begun = Instant::now();
    runner.signal("TERM");
    runner.says("another signal aborts");
    runner.signal("INT");
    let (code, said) = runner.end();
    assert_eq!(code, Some(130), "{said:#?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(!is_alive(&place.lines("child")[0]));
}
