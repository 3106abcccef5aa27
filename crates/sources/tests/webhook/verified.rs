//! Who is believed.

use watchkeeper_sources::webhook::Receiver;

use crate::sender::{SECRET, Shop, github, now, signed};

#[tokio::test]
async fn a_delivery_is_believed_if_it_is_signed_and_of_now() {
    let shop = Shop::standard();
    let body = r#"{"order": 7}"#;
    assert_eq!(shop.deliver("1", body).await, 202);
    let send =
        |headers: String, body: &'static str| shop.send("POST", Box::leak(headers.into_boxed_str()), body);
    assert_eq!(send(signed("another secret", "2", now(), body), body).await, 401);
    assert_eq!(send(signed(SECRET, "2", now(), body), r#"{"order":7}"#).await, 401, "altered white space");
    assert_eq!(send(signed(SECRET, "2", now() - 400, body), body).await, 401, "replayed");
    assert_eq!(send(signed(SECRET, "2", now() + 400, body), body).await, 401, "a clock that is wrong");
    assert_eq!(
        send(signed(SECRET, "2", now() - 200, body), body).await,
        202,
        "a clock that is not very wrong"
    );
    assert_eq!(send(String::new(), body).await, 401);
    assert_eq!(shop.receiver.refused(), 5);
    assert_eq!(shop.send("GET", "", "").await, 405);
}

#[tokio::test]
async fn a_delivery_that_came_before_is_said_to_be_all_right() {
    let shop = Shop::standard();
    assert_eq!(shop.deliver("1", "{}").await, 202);
    assert_eq!(shop.deliver("1", "{}").await, 200);
    assert_eq!(shop.deliver("2", "{}").await, 202);
}

#[tokio::test]
async fn secrets_are_rotated_without_a_restart() {
    let shop = Shop::standard();
    let file = shop.directory.path().join("secret");
    let with = |secret: &str, id: &str| signed(secret, id, now(), "{}");
    assert_eq!(shop.send("POST", &with("the next one", "1"), "{}").await, 401);
    std::fs::write(&file, format!("{SECRET}\nthe next one\n")).unwrap();
    assert_eq!(shop.send("POST", &with("the next one", "1"), "{}").await, 202);
    assert_eq!(shop.send("POST", &with(SECRET, "2"), "{}").await, 202);
    std::fs::write(&file, "the next one\n").unwrap();
    assert_eq!(shop.send("POST", &with(SECRET, "3"), "{}").await, 401);
    // Nor are they told of.
    let shown = format!("{:?}", shop.receiver);
    assert!(!shown.contains(SECRET) && !shown.contains("the next one"), "{shown}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(shop.send("POST", &with("the next one", "3"), "{}").await, 503);
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_is_verified() {
    let shop = Shop::open(|file| Receiver::standard(file).max_body_bytes(1000));
    let large = "x".repeat(1001);
    assert_eq!(shop.deliver("1", &large).await, 413);
    assert_eq!(shop.receiver.refused(), 0);
    assert_eq!(shop.deliver("1", &large[1..]).await, 202);
}

#[tokio::test]
async fn deliveries_are_verified_as_github_signs_them() {
    let shop = Shop::open(Receiver::github);
    let sign = |secret: &str, body: &str| github(secret, "7", body);
    assert_eq!(shop.send("POST", &sign("another", "{}"), "{}").await, 401);
    assert_eq!(shop.send("POST", &sign(SECRET, "{}"), "{}").await, 202);
    assert_eq!(shop.send("POST", &sign(SECRET, "{}"), "{}").await, 200);
}

#[tokio::test]
async fn a_recorded_delivery_under_the_id_of_another_keeps_the_other_from_nothing() {
    let shop = Shop::open(Receiver::github);
    let (recorded, honest) = (r#"{"order": 1}"#, r#"{"order": 2}"#);
    assert_eq!(shop.send("POST", &github(SECRET, "1", recorded), recorded).await, 202);
    // The id is not signed, so that anybody can write another one.
    shop.send("POST", &github(SECRET, "2", recorded), recorded).await;
    assert_eq!(shop.send("POST", &github(SECRET, "2", honest), honest).await, 202);
}

#[tokio::test]
async fn a_flood_of_forged_deliveries_keeps_no_honest_one_out() {
    let shop = Shop::standard();
    let forged = signed("forged", "1", now(), "{}");
    let flood = futures_util::future::join_all((0..50).map(|_| shop.send("POST", &forged, "{}")));
    let (refused, honest) = tokio::join!(flood, shop.deliver("1", "{}"));
    assert!(refused.iter().all(|status| *status == 401), "{refused:?}");
    assert_eq!(honest, 202);
}
