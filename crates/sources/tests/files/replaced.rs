//! Files that are written, replaced, exchanged and moved.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use watchkeeper_sources::files::{Files, Watching};

use crate::place::{Place, route};
use crate::tap::Tap;

fn routes(place: &Place) -> Files {
    Files::directory(place.root()).kind("example.com/v1", "Route")
}

/// Waits for longer than anything that happened before could take to be told: for a file that is moved away.
async fn pass(place: &Place, tap: &mut Tap) {
    place.write("passing.yaml", &route("passing", 1));
    tap.until_value("passing", 1).await;
    fs::rename(place.path("passing.yaml"), place.aside("passed.yaml")).unwrap();
    tap.until_gone("passing").await;
}

#[tokio::test]
async fn an_editor_that_replaces_a_file_changes_its_objects_and_deletes_none() {
    let place = Place::new();
    place.write("a.yaml", &route("a", 1));
    place.write("b.yaml", &route("b", 1));
    let files = routes(&place);
    let mut tap = Tap::on(&files).await;
    assert_eq!(files.status().watching, Watching::Events);
    for value in (2..40).step_by(3) {
        place.edit("a.yaml", &route("a", value));
        tap.until_value("a", value).await;
        place.replace("a.yaml", &route("a", value + 1));
        tap.until_value("a", value + 1).await;
        let script = format!("s/value: .*/value: {}/", value + 2);
        assert!(
            Command::new("sed").arg("-i").arg(script).arg(place.path("a.yaml")).status().unwrap().success()
        );
        tap.until_value("a", value + 2).await;
    }
    pass(&place, &mut tap).await;
    assert!(!tap.says("gone a"), "{:#?}", tap.log);
    assert_eq!(files.status().drift, 0);
}

#[tokio::test]
async fn who_deletes_a_file_and_makes_it_anew_deletes_no_object() {
    let place = Place::new();
    place.write("a.yaml", &route("a", 1));
    place.write("b.yaml", &route("b", 1));
    let files = routes(&place);
    let mut tap = Tap::on(&files).await;
    assert_eq!(files.status().watching, Watching::Events);
    for value in (2..40).step_by(3) {
        // As git does.
        place.remove("a.yaml");
        place.write("a.yaml", &route("a", value));
        tap.until_value("a", value).await;
        // As programs do that know of no way to replace a file.
        place.write(".a.yaml.new", &route("a", value + 1));
        place.remove("a.yaml");
        fs::rename(place.path(".a.yaml.new"), place.path("a.yaml")).unwrap();
        tap.until_value("a", value + 1).await;
        let new = place.aside("new.yaml");
        fs::write(&new, route("a", value + 2)).unwrap();
        let copied =
            Command::new("cp").arg("--remove-destination").arg(new).arg(place.path("a.yaml")).status();
        assert!(copied.unwrap().success());
        tap.until_value("a", value + 2).await;
    }
    pass(&place, &mut tap).await;
    assert!(!tap.says("gone a"), "{:#?}", tap.log);
    assert_eq!(files.status().drift, 0);
}

#[tokio::test]
async fn a_file_is_not_read_before_its_writer_has_closed_it() {
    let place = Place::new();
    let text = |value| format!("{}---\n{}---\n{}", route("a", value), route("b", value), route("c", value));
    place.write("all.yaml", &text(1));
    place.write("other.yaml", &route("other", 1));
    let mut tap = Tap::on(&routes(&place)).await;

    let mut file = File::create(place.path("all.yaml")).unwrap();
    file.write_all(route("a", 2).as_bytes()).unwrap();
    file.sync_all().unwrap();
    // What was closed later is read, and what is still open is not.
    pass(&place, &mut tap).await;
    assert_eq!((tap.value("a"), tap.value("c")), (Some(1), Some(1)));
    file.write_all(&text(2).as_bytes()[route("a", 2).len()..]).unwrap();
    drop(file);
    tap.until_value("c", 2).await;
    assert!(!tap.says("gone b") && !tap.says("gone c"), "{:#?}", tap.log);
}

#[tokio::test]
async fn a_file_that_stays_open_is_read_when_it_is_left_alone() {
    let place = Place::new();
    let mut file = File::create(place.path("a.yaml")).unwrap();
    let mut tap = Tap::on(&routes(&place)).await;
    file.write_all(route("a", 1).as_bytes()).unwrap();
    tap.until_value("a", 1).await;
}

/// What the kubelet does when a ConfigMap changes.
fn project(place: &Place, generation: u64) {
    let directory = format!("..generation_{generation}");
    fs::create_dir(place.path(&directory)).unwrap();
    place.write(&format!("{directory}/app.yaml"), &route("app", generation));
    symlink(&directory, place.path("..data_tmp")).unwrap();
    fs::rename(place.path("..data_tmp"), place.path("..data")).unwrap();
    if generation == 1 {
        symlink("..data/app.yaml", place.path("app.yaml")).unwrap();
    } else {
        fs::remove_dir_all(place.path(format!("..generation_{}", generation - 1))).unwrap();
    }
}

#[tokio::test]
async fn a_mounted_config_map_changes_when_its_link_is_exchanged() {
    for single in [false, true] {
        let place = Place::new();
        project(&place, 1);
        let files = if single { Files::file(place.path("app.yaml")) } else { Files::directory(place.root()) };
        let mut tap = Tap::on(&files.kind("example.com/v1", "Route")).await;
        for generation in 2..6 {
            project(&place, generation);
            tap.until_value("app", generation).await;
        }
        assert!(!tap.says("gone") && !tap.says("rejected"), "{:#?}", tap.log);
    }
}

#[tokio::test]
async fn a_link_to_a_file_elsewhere_follows_that_file() {
    let place = Place::new();
    fs::create_dir(place.aside("elsewhere")).unwrap();
    let target = place.aside("elsewhere/target");
    fs::write(&target, route("a", 1)).unwrap();
    symlink(&target, place.path("a.yaml")).unwrap();
    let mut tap = Tap::on(&routes(&place)).await;
    fs::write(&target, route("a", 2)).unwrap();
    tap.until_value("a", 2).await;
}

#[tokio::test]
async fn a_file_that_is_a_mount_is_polled_and_says_so() {
    let place = Place::new();
    fs::write(place.aside("origin.yaml"), route("a", 1)).unwrap();
    place.write("a.yaml", "");
    let mount = |arguments: &[&str]| Command::new(arguments[0]).args(&arguments[1..]).status();
    let (origin, target) = (place.aside("origin.yaml"), place.path("a.yaml"));
    let (origin, target) = (origin.to_str().unwrap(), target.to_str().unwrap());
    if !mount(&["mount", "--bind", origin, target]).is_ok_and(|status| status.success()) {
        // Only root may; how such a file is recognised is tested in `files::mounts`.
        return;
    }
    let files = Files::file(target).kind("example.com/v1", "Route");
    let mut tap = Tap::on(&files).await;
    let status = files.status();
    assert!(status.notes.iter().any(|note| note.contains("mount of its own")), "{status:?}");
    assert_eq!(status.watching, Watching::Polling { reason: "the file is a mount of its own".into() });
    // In place it does change.
    fs::write(origin, route("a", 2)).unwrap();
    tap.until_value("a", 2).await;
    assert!(mount(&["umount", target]).unwrap().success());
}

#[tokio::test]
async fn a_change_that_size_and_time_do_not_show_is_seen() {
    for poll in [None, Some(Duration::from_millis(20))] {
        let place = Place::new();
        place.write("a.yaml", &route("a", 1));
        let files = poll.map_or(routes(&place), |interval| routes(&place).poll(interval));
        let mut tap = Tap::on(&files).await;
        let modified = fs::metadata(place.path("a.yaml")).unwrap().modified().unwrap();
        for value in 2..9 {
            let mut file = File::options().write(true).open(place.path("a.yaml")).unwrap();
            file.write_all(route("a", value).as_bytes()).unwrap();
            file.set_modified(modified).unwrap();
            drop(file);
            tap.until_value("a", value).await;
        }
    }
}

#[tokio::test]
async fn a_file_that_is_renamed_changes_nothing() {
    let place = Place::new();
    place.write("m.yaml", &route("a", 1));
    place.write("other.yaml", &route("other", 1));
    let mut tap = Tap::on(&routes(&place)).await;
    let told = tap.log.len();
    fs::create_dir(place.path("sub")).unwrap();
    for (from, to) in [("m.yaml", "z.yaml"), ("z.yaml", "b.yaml"), ("b.yaml", "sub/a.yaml"), ("sub", "bus")] {
        fs::rename(place.path(from), place.path(to)).unwrap();
        pass(&place, &mut tap).await;
    }
    assert!(tap.log[told..].iter().all(|line| line.contains("passing")), "{:#?}", tap.log);
    place.write("bus/a.yaml", &route("a", 2));
    tap.until_value("a", 2).await;
}

#[tokio::test]
async fn another_layout_is_no_change() {
    let place = Place::new();
    place.write("a.yaml", &route("a", 1));
    place.write("other.yaml", &route("other", 1));
    let mut tap = Tap::on(&routes(&place)).await;
    let told = tap.log.len();
    place.write(
        "a.yaml",
        &format!("# the same\n{}\n", route("a", 1).replace("spec:\n  value: 1", "spec: {value: 1}")),
    );
    pass(&place, &mut tap).await;
    assert!(tap.log[told..].iter().all(|line| line.contains("passing")), "{:#?}", tap.log);
}
