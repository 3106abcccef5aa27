use super::super::content_type::media_type;
use super::*;
use crate::request::recorded;
use http::header::CONTENT_TYPE;
use proptest::prelude::*;
use serde_json::{Value, json};

fn with(name: HeaderName, value: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.append(name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
    headers
}

fn shown(accepted: Result<Accepted, Rejected>) -> Value {
    let Ok(accepted) = accepted else { return Value::Null };
    let version = if accepted.version == MetaVersion::V1 { "v1" } else { "v1beta1" };
    let transform = match accepted.transform {
        Transform::Object => String::new(),
        Transform::Table => format!("Table.{version}"),
        Transform::Partial if accepted.is_partial_list => format!("PartialObjectMetadataList.{version}"),
        Transform::Partial => format!("PartialObjectMetadata.{version}"),
    };
    json!([accepted.format.media_type(), transform, accepted.is_pretty])
}

#[test]
fn accept_headers_are_weighed_as_kube_apiserver_weighs_them() {
    for case in recorded(include_str!("../cases/accepts.jsonl")) {
        let headers = with(ACCEPT, case["in"].as_str().unwrap());
        let accepted = |endpoint| shown(accept(&headers, endpoint));
        let streamed = |endpoint| shown(accept_stream(&headers, endpoint))[0].clone();
        assert_eq!(case["objects"], accepted(Endpoint::Objects), "{case}");
        assert_eq!(case["custom"], accepted(Endpoint::Custom), "{case}");
        assert_eq!(case["no_table"], accepted(Endpoint::Untabled), "{case}");
        assert_eq!(case["plain"], accepted(Endpoint::Plain), "{case}");
        let is_aggregated = case["discovery"][1] == "APIGroupDiscoveryList.v2";
        let aggregated = case["discovery"][0].as_str().filter(|_| is_aggregated);
        assert_eq!(aggregated_discovery(&headers).map(Format::media_type), aggregated, "{case}");
        assert_eq!(case["stream"][0], streamed(Endpoint::Objects), "{case}");
        assert_eq!(case["custom_stream"][0], streamed(Endpoint::Custom), "{case}");
    }
}

#[test]
fn what_would_be_accepted_is_said() {
    let headers = with(ACCEPT, "text/html");
    let rejected = accept(&headers, Endpoint::Objects).unwrap_err();
    assert_eq!(rejected.code(), 406);
    assert_eq!(
        rejected.message(),
        "only the following media types are accepted: \
         application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    assert_eq!(
        accept_stream(&headers, Endpoint::Custom).unwrap_err().message(),
        "only the following media types are accepted: \
         application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    );
}

#[test]
fn only_the_first_accept_header_counts() {
    let mut headers = with(ACCEPT, "application/yaml");
    headers.append(ACCEPT, http::HeaderValue::from_static("application/json"));
    assert_eq!(accept(&headers, Endpoint::Objects).unwrap().format, Format::Yaml);
}

#[test]
fn many_clauses_are_weighed_by_quality() {
    let header = format!("{}application/json;q=0.2,application/yaml;q=0.3", "text/html,".repeat(5000));
    assert_eq!(accept(&with(ACCEPT, &header), Endpoint::Objects).unwrap().format, Format::Yaml);
}

#[test]
fn bodies_are_recognised_as_kube_apiserver_recognises_them() {
    for case in recorded(include_str!("../cases/content_types.jsonl")) {
        let found = body_format(&with(CONTENT_TYPE, case["in"].as_str().unwrap()), false);
        assert_eq!(case["type"], json!(found.ok().map(BodyFormat::media_type)), "{case}");
    }
    assert_eq!(body_format(&HeaderMap::new(), true), Ok(BodyFormat::Json));
    let rejected = body_format(&with(CONTENT_TYPE, "text/plain"), false).unwrap_err();
    assert_eq!(rejected.code(), 415);
    assert_eq!(
        rejected.message(),
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"
    );
}

#[test]
fn patches_are_told_apart_by_their_content_type() {
    let of = |said: &str, strategic| patch_format(&with(CONTENT_TYPE, said), strategic);
    assert_eq!(of("application/json-patch+json", false), Ok(PatchFormat::Json));
    assert_eq!(of("application/merge-patch+json; charset=utf-8", false), Ok(PatchFormat::Merge));
    assert_eq!(of("application/strategic-merge-patch+json", true), Ok(PatchFormat::Strategic));
    assert_eq!(of("application/apply-patch+yaml", true), Ok(PatchFormat::Apply));
    let custom = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    let built_in = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";
    for said in ["", "application/json", "application/merge-patch+json ;x", ";application/merge-patch+json"] {
        assert_eq!(of(said, true).unwrap_err().message(), built_in, "{said}");
    }
    assert_eq!(of("application/strategic-merge-patch+json", false).unwrap_err().message(), custom);
}

#[test]
fn people_get_readable_json() {
    let pretty = |query: &str, agent: &str| super::pretty(&with(USER_AGENT, agent), &Query::parse(query));
    for agent in ["curl/8.5.0", "Wget/1.21", "Mozilla/5.0 (X11)"] {
        assert!(pretty("", agent) && pretty("pretty=", agent) && !pretty("pretty=0", agent), "{agent}");
    }
    assert!(!pretty("", "kubectl/v1.36") && !pretty("", "Mozilla/4.0"));
    assert!(pretty("pretty=true", "kubectl") && pretty("pretty=1", "") && !pretty("pretty=yes", "curl"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::request::cases(512)))]

    #[test]
    fn any_header_is_weighed(text in "[ -~]{0,200}", likely in "((application|\\*)/(json|yaml|\\*)(;(q|as|g|v|stream|sv)=[a-z0-9.]{0,5}){0,3},){0,30}") {
        for value in [text.as_str(), &likely] {
            let headers = with(ACCEPT, value);
            for endpoint in [Endpoint::Objects, Endpoint::Custom, Endpoint::Untabled, Endpoint::Plain] {
                let _ = (accept(&headers, endpoint), accept_stream(&headers, endpoint));
            }
            let _ = aggregated_discovery(&headers);
        }
    }

    #[test]
    fn any_content_type_is_read(bytes in proptest::collection::vec(0x80..=0xff_u8, 0..20), text in any::<String>(), likely in "application/json(; ?[a-z]=\"?[a-z\\\\\"]{0,4}){0,4}") {
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_TYPE, http::HeaderValue::from_bytes(&bytes).unwrap());
        let _ = (body_format(&headers, true), patch_format(&headers, true));
        let _ = (media_type(&text), media_type(&likely));
    }

    #[test]
    fn every_format_is_found_by_its_own_name(index in 0..2_usize, quality in 0..10_u8) {
        let format = FORMATS[index];
        let headers = with(ACCEPT, &format!("text/html,{};q=0.{quality}", format.media_type()));
        prop_assert_eq!(accept(&headers, Endpoint::Objects).unwrap().format, format);
    }
}
