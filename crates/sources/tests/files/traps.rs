//! What is odd about directories and the files in them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use watchkeeper_sources::files::{Files, Watching};

use crate::place::{Place, route};
use crate::tap::Tap;

fn routes(place: &Place) -> Files {
    Files::directory(place.root()).kind("example.com/v1", "Route")
}

#[tokio::test]
async fn a_directory_that_is_filled_before_it_is_watched_is_read_whole() {
    let place = Place::new();
    let mut tap = Tap::on(&routes(&place)).await;
    // Moved here as a whole.
    fs::create_dir_all(place.aside("prepared/deep/er")).unwrap();
    fs::write(place.aside("prepared/one.yaml"), route("one", 1)).unwrap();
    fs::write(place.aside("prepared/deep/er/two.yaml"), route("two", 1)).unwrap();
    fs::rename(place.aside("prepared"), place.path("moved")).unwrap();
    // Made here, at once and all along.
    for number in 0..200 {
        fs::create_dir_all(place.path(format!("made-{number}/deep"))).unwrap();
        place.write(&format!("made-{number}/deep/a.yaml"), &route(&format!("made-{number}"), 1));
    }
    tap.until(|tap| tap.values.len() == 202).await;
    // And all of them are watched.
    place.write("moved/deep/er/two.yaml", &route("two", 2));
    tap.until_value("two", 2).await;
    place.write("made-77/deep/a.yaml", &route("made-77", 2));
    tap.until_value("made-77", 2).await;
    fs::remove_dir_all(place.path("moved")).unwrap();
    tap.until(|tap| tap.values.len() == 200).await;
}

#[tokio::test]
async fn a_directory_that_is_made_anew_is_watched_anew() {
    let place = Place::new();
    place.write("other.yaml", &route("other", 1));
    place.write("others.yaml", &format!("{}---\n{}", route("b", 1), route("c", 1)));
    let mut tap = Tap::on(&routes(&place)).await;
    for round in 1..20 {
        fs::create_dir(place.path("sub")).unwrap();
        place.write("sub/a.yaml", &route("a", round));
        tap.until_value("a", round).await;
        place.write("sub/a.yaml", &route("a", round + 100));
        tap.until_value("a", round + 100).await;
        fs::remove_dir_all(place.path("sub")).unwrap();
    }
    tap.until_gone("a").await;
}

#[tokio::test]
async fn twenty_thousand_files_at_once_are_all_seen() {
    const FILES: usize = 20_000;
    let place = Place::new();
    let files = routes(&place);
    let mut tap = Tap::on(&files).await;
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let place = &place;
            scope.spawn(move || {
                for number in (writer..FILES).step_by(4) {
                    place.write(&format!("{number}.yaml"), &route(&format!("n{number}"), 1));
                }
            });
        }
    });
    tap.until(|tap| tap.values.len() == FILES).await;
    place.write("777.yaml", &route("n777", 2));
    tap.until_value("n777", 2).await;
    assert!(!tap.says("gone") && !tap.says("rejected"));
}

#[tokio::test]
async fn a_directory_can_be_polled() {
    let place = Place::new();
    place.write("a.yaml", &route("a", 1));
    place.write("b.yaml", &route("b", 1));
    place.write("c.yaml", &route("c", 1));
    let files = routes(&place).poll(Duration::from_millis(20));
    let mut tap = Tap::on(&files).await;
    assert_eq!(files.status().watching, Watching::Polling { reason: "asked to".into() });
    place.write("a.yaml", &route("a", 2));
    tap.until_value("a", 2).await;
    place.remove("b.yaml");
    tap.until_gone("b").await;
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/d.yaml", &route("d", 1));
    tap.until_value("d", 1).await;
}

#[tokio::test]
async fn of_two_files_with_one_object_the_first_wins_until_it_is_gone() {
    let place = Place::new();
    place.write("b.yaml", &route("a", 2));
    place.write("other.yaml", &route("other", 1));
    place.write("others.yaml", &route("others", 1));
    let mut tap = Tap::on(&routes(&place)).await;
    assert_eq!(tap.value("a"), Some(2));
    place.write("a.yaml", &route("a", 1));
    tap.until_value("a", 1).await;
    tap.until_said("b.yaml").await;
    assert!(tap.says("rejected a: conflict"), "{:#?}", tap.log);
    assert!(tap.says("a.yaml has this object, too, and comes first"), "{:#?}", tap.log);
    place.write("b.yaml", &route("a", 3));
    place.remove("a.yaml");
    tap.until_value("a", 3).await;
    assert!(!tap.says("gone a"), "{:#?}", tap.log);

    // The same if they are there from the beginning.
    place.write("c.yaml", &route("a", 4));
    let tap = Tap::on(&routes(&place)).await;
    assert_eq!(tap.value("a"), Some(3));
    assert!(tap.says("rejected a: conflict"), "{:#?}", tap.log);
}

#[tokio::test]
async fn files_that_belong_together_are_read_together() {
    let place = Place::new();
    fs::create_dir(place.path("shop")).unwrap();
    let write = |number: u32| {
        place.write("shop/tls.crt", &format!("certificate {number}"));
        place.write("shop/tls.key", &format!("key {number}"));
    };
    write(0);
    fs::write(place.path("shop/der"), [0xff, 0x00]).unwrap();
    let files = Files::bundles(place.root());
    let mut tap = Tap::on(&files).await;
    assert_eq!(tap.values["shop"]["binaryData"]["der"], "/wA=");
    for number in 1..8 {
        write(number);
        tap.until(|tap| tap.values["shop"]["data"]["tls.crt"] == format!("certificate {number}")).await;
        assert_eq!(tap.values["shop"]["data"]["tls.key"], format!("key {number}"));
    }
    fs::create_dir(place.path("other")).unwrap();
    place.write("other/tls.crt", "certificate");
    tap.until(|tap| tap.values.contains_key("other")).await;
    fs::remove_dir_all(place.path("other")).unwrap();
    tap.until_gone("other").await;
}

#[tokio::test]
async fn one_bad_document_keeps_its_last_good_state_and_disturbs_no_other() {
    let place = Place::new();
    let text = |b: &str| format!("{}---\n{b}---\n{}", route("a", 1), route("c", 1));
    place.write("all.yaml", &text(&route("b", 1)));
    let files = routes(&place);
    let mut tap = Tap::on(&files).await;
    let broken = text(&route("b", 2).replace("value: 2", "value: [2")).replace("value: 1", "value: 3");
    place.write("all.yaml", &broken);
    tap.until_value("c", 3).await;
    assert_eq!(tap.value("b"), Some(1));
    let place_of_it = format!("{}:14:1: document 2: ", place.path("all.yaml").display());
    tap.until_said(&place_of_it).await;

    // A reader that comes again is told to keep it, too.
    let mut again = Tap::on(&files).await;
    assert!(again.says("rejected b: unreadable"), "{:#?}", again.log);
    place.write("all.yaml", &text(""));
    again.until_value("a", 1).await;
    tap.until_gone("b").await;
    again.until_said("gone b").await;
}

#[tokio::test]
async fn what_editors_leave_behind_is_not_read() {
    let place = Place::new();
    fs::create_dir(place.path(".git")).unwrap();
    for name in [".a.yaml", "a.yaml~", ".a.yaml.swp", "#a.yaml#", ".git/config.yaml", "a.yaml.bak", "README"]
    {
        place.write(name, &route("a", 9));
    }
    symlink("nobody@nowhere.1", place.path(".#a.yaml")).unwrap();
    place.write("b.yaml", &route("b", 1));
    let mut tap = Tap::on(&routes(&place)).await;
    assert_eq!(tap.values.len(), 1);
    place.write(".a.yaml", &route("a", 10));
    place.write("b.yaml", &route("b", 2));
    tap.until_value("b", 2).await;
    assert_eq!(tap.values.len(), 1);
    assert!(!tap.says("rejected"), "{:#?}", tap.log);
}

#[tokio::test]
async fn links_in_a_loop_cost_themselves_only() {
    let place = Place::new();
    fs::create_dir_all(place.path("a/b")).unwrap();
    symlink("../..", place.path("a/b/up")).unwrap();
    symlink("self.yaml", place.path("self.yaml")).unwrap();
    symlink("nothing", place.path("nowhere.yaml")).unwrap();
    place.write("a/b/c.yaml", &route("c", 1));
    let mut tap = Tap::on(&routes(&place)).await;
    assert!(tap.says("the link leads back to a directory above it"), "{:#?}", tap.log);
    assert!(tap.says("nowhere.yaml: the link leads nowhere"), "{:#?}", tap.log);
    assert!(tap.says("self.yaml"), "{:#?}", tap.log);
    place.write("a/b/c.yaml", &route("c", 2));
    tap.until_value("c", 2).await;
}

#[tokio::test]
async fn a_file_that_cannot_be_read_keeps_its_objects() {
    let place = Place::new();
    place.write("a.yaml", &route("a", 1));
    place.write("b.yaml", &route("b", 1));
    let files = routes(&place);
    let mut tap = Tap::on(&files).await;
    fs::set_permissions(place.path("a.yaml"), fs::Permissions::from_mode(0o0)).unwrap();
    if fs::read(place.path("a.yaml")).is_err() {
        tap.until_said("permission denied").await;
    } else {
        // Root may read everything, but not this.
        symlink("/proc/self/mem", place.path(".a")).unwrap();
        fs::rename(place.path(".a"), place.path("a.yaml")).unwrap();
        tap.until_said("a.yaml: ").await;
    }
    place.write("b.yaml", &route("b", 2));
    tap.until_value("b", 2).await;
    assert_eq!(tap.value("a"), Some(1));
    let again = Tap::on(&files).await;
    assert!(again.says("rejected a: unreadable"), "{:#?}", again.log);

    fs::remove_file(place.path("a.yaml")).unwrap();
    place.write("a.yaml", &route("a", 2));
    tap.until_value("a", 2).await;
    // The rejection of the file may go, the object may not.
    assert!(!tap.log.iter().any(|line| line == "gone a"), "{:#?}", tap.log);
}

#[tokio::test]
async fn line_ends_and_byte_order_marks_make_no_difference() {
    let place = Place::new();
    let text = format!("{}---\n{}", route("a", 1), route("b", 1));
    place.write("a.yaml", &format!("\u{feff}{}", text.replace('\n', "\r\n")));
    let tap = Tap::on(&routes(&place)).await;
    assert_eq!((tap.value("a"), tap.value("b")), (Some(1), Some(1)));
    assert!(!tap.says("rejected"), "{:#?}", tap.log);
}

#[tokio::test]
async fn a_file_that_is_too_large_is_rejected_and_pipes_are_not_waited_for() {
    let place = Place::new();
    place.write("a.yaml", &route("a", 1));
    place.write("b.yaml", &format!("{}# {}\n", route("b", 1), "x".repeat(5000)));
    let pipe = std::process::Command::new("mkfifo").arg(place.path("c.yaml")).status().unwrap();
    assert!(pipe.success());
    let tap = Tap::on(&routes(&place).max_file_bytes(4000)).await;
    assert_eq!(tap.values.len(), 1);
    assert!(tap.says("rejected b.yaml: too_large"), "{:#?}", tap.log);
}
