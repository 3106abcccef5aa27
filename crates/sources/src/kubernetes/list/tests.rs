use proptest::prelude::*;
use serde_json::{Value, json};
use watchkeeper_core::{Key, Projection};

use super::*;

fn pods() -> Kinds {
    Kinds::one(Projection::default().complete_kind("v1", "Pod"))
}

/// What a list was read as: the name of each item, or why it was rejected; and what it said of itself.
type Read = (Vec<Result<String, (Reason, Option<Key>)>>, Result<ListMeta, NotAList>);

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Read {
    let mut reader = ListReader::new(limit);
    let mut kinds = pods();
    let mut seen = Vec::new();
    let mut chunks = chunks.into_iter();
    loop {
        match reader.next(&mut kinds) {
            Err(error) => return (seen, Err(error)),
            Ok(Some(Found::Item(document))) => seen.push(Ok(document.header.key.name().to_owned())),
            Ok(Some(Found::Rejected(rejection))) => {
                assert_eq!(rejection.position, None);
                seen.push(Err((rejection.reason, rejection.key)));
            }
            Ok(None) if reader.has_ended() => return (seen, Ok(reader.into_meta())),
            Ok(None) => match chunks.next() {
                Some(chunk) => reader.push(chunk),
                None => reader.end(),
            },
        }
    }
}

fn read_whole(json: &str) -> Read {
    read([json.as_bytes()], 10_000)
}

fn meta(version: &str) -> ListMeta {
    ListMeta { version: Some(version.into()), next: None }
}

fn broken(read: Read) -> String {
    read.1.unwrap_err().0
}

#[test]
fn the_order_of_the_members_does_not_matter_and_unknown_ones_are_passed_over() {
    let items = r#""items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]"#;
    let about = r#""metadata":{"resourceVersion":"7","continue":"","remainingItemCount":3}"#;
    let other = r#""kind":"PodList","new":[{"items":[{}]}],"more":null"#;
    for json in [
        format!("{{{about},{items},{other}}}"),
        format!("{{{items},{about},{other}}}"),
        format!(" {{ {other} , {items} , {about} }} \n"),
    ] {
        let (seen, said) = read_whole(&json);
        assert_eq!(seen, [Ok("a".to_owned()), Ok("b".to_owned())]);
        assert_eq!(said, Ok(meta("7")));
    }
}

#[test]
fn a_list_may_be_empty_in_every_way() {
    for items in [r#","items":[]"#, r#","items":null"#, "", r#","items":[ ]"#] {
        let json = format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"7"}}{items}}}"#);
        assert_eq!(read_whole(&json), (vec![], Ok(meta("7"))), "{json}");
    }
    assert_eq!(read_whole("{}"), (vec![], Ok(ListMeta::default())));
}

#[test]
fn what_is_not_a_list_is_said_to_be_none() {
    assert!(broken(read_whole(r#"{"kind":"Status","message":"m"}"#)).contains("Status"));
    assert!(broken(read_whole(r#"{"kind":"Table","rows":[]}"#)).contains("Table"));
    assert!(broken(read_whole("<html></html>")).contains("not a list"));
    assert!(broken(read_whole(r#"{"items":{}}"#)).contains("not a list"));
    assert!(broken(read_whole(r#"{"items":[]}{}"#)).contains("not a list"));
    assert!(broken(read_whole("")).contains("cut off"));
}

#[test]
fn a_list_that_is_cut_off_anywhere_has_no_end() {
    let json = r#"{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}"#;
    for end in 0..json.len() {
        assert_eq!(broken(read([&json.as_bytes()[..end]], 10_000)), "the list is cut off");
    }
}

#[test]
fn bad_items_are_rejected_and_the_others_delivered() {
    let deep = format!(r#"{{"metadata":{{"name":"deep"}},"x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let json = format!(
        r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{{"metadata":{{"name":"a"}}}},
        {{"metadata":{{}}}},{{"kind":"Secret","metadata":{{"name":"s"}}}},null,{deep},{{"metadata":{{"name":"b"}}}}]}}"#
    );
    let (seen, said) = read_whole(&json);
    assert_eq!(
        seen,
        [
            Ok("a".to_owned()),
            Err((Reason::Nameless, None)),
            Err((Reason::WrongKind, None)),
            Err((Reason::Malformed, None)),
            Err((Reason::Malformed, Some(Key::new(None, "deep")))),
            Ok("b".to_owned()),
        ]
    );
    assert_eq!(said, Ok(meta("7")));
}

#[test]
fn invalid_utf8_costs_one_item() {
    let mut json = br#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"},"x":"?"},{"metadata":{"name":"b"}}]}"#.to_vec();
    let at = json.iter().position(|&byte| byte == b'?').unwrap();
    json[at] = 0xff;
    let (seen, said) = read([&json[..]], 10_000);
    assert_eq!(seen, [Err((Reason::Malformed, Some(Key::new(None, "a")))), Ok("b".to_owned())]);
    assert_eq!(said, Ok(meta("7")));
}

#[test]
fn broken_syntax_within_an_item_is_broken_syntax_of_the_list() {
    let json = r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"},"x":tru},{"metadata":{"name":"b"}}]}"#;
    assert!(broken(read_whole(json)).contains("expected true, false or null"));
}

#[test]
fn an_item_of_a_hundred_megabytes_is_rejected_by_name_and_never_held() {
    let limit = 1024 * 1024;
    let mut reader = ListReader::new(limit);
    let mut kinds = pods();
    let mut most_held = 0;
    let mut seen = Vec::new();
    let mut push = |reader: &mut ListReader, chunk: &[u8]| {
        reader.push(chunk);
        most_held = most_held.max(reader.buffer.capacity());
        while let Some(found) = reader.next(&mut kinds).unwrap() {
            seen.push(match found {
                Found::Item(document) => document.header.key.to_string(),
                Found::Rejected(rejection) => format!("{} {:?}", rejection.reason.as_str(), rejection.key),
            });
        }
    };
    push(&mut reader, br#"{"items":[{"metadata":{"name":"huge","namespace":"n"},"x":""#);
    for _ in 0..1600 {
        push(&mut reader, &[b'{'; 64 * 1024]);
    }
    push(&mut reader, br#""},{"metadata":{"name":"b"}}],"metadata":{"resourceVersion":"7"}}"#);
    reader.end();
    assert!(reader.next(&mut kinds).unwrap().is_none());
    assert_eq!(seen, ["too_large Some(Key(n/huge))", "b"]);
    assert_eq!(reader.into_meta(), meta("7"));
    assert!(most_held <= 2 * limit + 128 * 1024, "{most_held}");
}

#[test]
fn an_endless_run_of_white_space_is_not_held() {
    let mut reader = ListReader::new(1000);
    for _ in 0..10_000 {
        reader.push(&[b' '; 1000]);
        assert!(reader.next(&mut pods()).unwrap().is_none());
        assert!(reader.buffer.capacity() <= KEEP);
    }
}

#[test]
fn the_work_is_linear_in_the_length_of_an_item() {
    let json = format!(r#"{{"items":[{{"metadata":{{"name":"a"}},"x":"{}"}}]}}"#, "y".repeat(1 << 20));
    let mut reader = ListReader::new(1 << 24);
    let mut attempts = 0;
    for chunk in json.as_bytes().chunks(100) {
        reader.push(chunk);
        attempts += usize::from(reader.rest().len() >= reader.enough);
        let _ = reader.next(&mut pods()).unwrap();
    }
    assert!(attempts < 40, "{attempts}");
}

/// Lists with items of all sizes, in any order of members, well-formed throughout.
fn any_list() -> impl Strategy<Value = String> {
    let text = "[\\PC\"\\\\{}\\[\\]]{0,30}";
    let item = (text, 0..3usize, any::<bool>()).prop_map(|(text, shape, pretty)| {
        let item = match shape {
            0 => {
                json!({"metadata": {"name": "n", "managedFields": [text]}, "x": [text, {"y": null}]})
            }
            1 => json!({"metadata": {"labels": {"a": text}}, "x": 1.5e3}),
            _ => json!({"x": text, "metadata": {"name": format!("n{}", text.len())}}),
        };
        if pretty { serde_json::to_string_pretty(&item) } else { serde_json::to_string(&item) }.unwrap()
    });
    (prop::collection::vec(item, 0..6), text, prop::sample::select(vec![0usize, 1, 2, 3, 4, 5])).prop_map(
        |(items, text, order)| {
            let mut members = [
                format!(r#""items": [{}]"#, items.join(" ,")),
                format!(r#""metadata":{{"continue":{},"resourceVersion":"7"}}"#, Value::from(text.clone())),
                format!(r#""{}":{}"#, "extra", json!([text, [text]])),
            ];
            members.swap(0, order % 3);
            members.swap(1, 1 + order / 3);
            format!("{{{}}}", members.join(","))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn items_do_not_depend_on_where_the_chunks_end(
        json in any_list(),
        sizes in prop::collection::vec(1..40usize, 1..60),
        limit in prop_oneof![Just(10_000usize), 60..200usize],
    ) {
        let whole = read([json.as_bytes()], limit);
        let mut chunks = Vec::new();
        let mut left = json.as_bytes();
        for size in sizes.iter().cycle() {
            if left.is_empty() {
                break;
            }
            let (chunk, more) = left.split_at((*size).min(left.len()));
            chunks.push(chunk);
            left = more;
        }
        prop_assert_eq!(&read(chunks, limit), &whole);
        prop_assert!(whole.1.is_ok());

        let expected: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(whole.0.len(), expected["items"].as_array().unwrap().len());
    }

    #[test]
    fn any_bytes_are_a_list_or_not(bytes in prop::collection::vec(any::<u8>(), 0..60), at in 0..90usize) {
        let mut json = br#"{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}"#.to_vec();
        let at = at.min(json.len());
        json.splice(at..at, bytes);
        let whole = read([&json[..]], 1_000);
        let bit_by_bit = read(json.chunks(3), 1_000);
        prop_assert_eq!(whole.1.is_ok(), bit_by_bit.1.is_ok());
        if whole.1.is_ok() {
            prop_assert_eq!(whole, bit_by_bit);
        }
    }
}
