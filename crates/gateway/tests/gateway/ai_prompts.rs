//! Prompts that are APIs: their inputs, and their models.

use http::Request;
use serde_json::{Value, json};

use crate::ai::{Ai, sha256};
use crate::support::{id, send};

const PATH: &str = "/v1/prompts/plan";

fn prompt(inputs: Value) -> Value {
    json!({
        "gateway": "main", "prompt": "plan", "model": "usual", "inputs": inputs,
        "template": "{{ tone }} {{ days }} {{ rate }} {{ places }} {{ guest.name }}{% if note %} {{ note }}{% endif %}",
    })
}

fn inputs() -> Value {
    json!({
        "tone": {"enum": ["formal", "easy"], "default": "easy"},
        "days": {"type": "Integer", "minimum": 1, "maximum": 14},
        "rate": {"type": "Number", "minimum": 0.5, "default": 1.5},
        "places": {"type": "Array", "items": {"type": "string", "maxLength": 5}, "minItems": 1, "maxItems": 2},
        "guest": {"type": "Object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
        "note": {"optional": true, "maxLength": 10},
    })
}

#[tokio::test]
async fn inputs_are_what_their_schema_says() {
    let ai = Ai::start().await;
    ai.model("usual", &[("openai", "echo")]).await;
    ai.bench.put("PromptTemplate", "plan", prompt(inputs())).await;
    let right = || json!({"days": 3, "places": ["Rome"], "guest": {"name": "Jo"}});
    let told = ai.post(PATH, &right()).await;
    assert_eq!(told.json()["output"], "You said: easy 3 1.5 [\"Rome\"] Jo", "{}", told.text());
    let with = |name: &str, value: Value| {
        let mut inputs = right();
        inputs[name] = value;
        inputs
    };
    let told = ai.post(PATH, &with("tone", json!("formal"))).await;
    assert_eq!(told.json()["output"], "You said: formal 3 1.5 [\"Rome\"] Jo", "{}", told.text());
    for (name, value, expected) in [
        ("tone", json!("rude"), "tone: is none of the values that are allowed"),
        ("days", json!(0), "days: is less than 1"),
        ("days", json!(15), "days: is more than 14"),
        ("days", json!(1.5), "days: has to be of type integer"),
        ("rate", json!(0.4), "rate: is less than 0.5"),
        ("places", json!([]), "places: has fewer than 1 items"),
        ("places", json!(["a", "b", "c"]), "places: has more than 2 items"),
        ("places", json!(["a", 7]), "places[1]: has to be of type string"),
        ("places", json!(["Athens"]), "places[0]: has more than 5 characters"),
        ("guest", json!({"name": 7}), "guest.name: has to be of type string"),
        ("note", json!("x".repeat(11)), "note: has to be a text of at most 10 bytes"),
        ("note", json!(null), "note: has to be a text"),
    ] {
        let told = ai.post(PATH, &with(name, value)).await;
        assert!(told.status == 400 && told.text().contains(expected), "{expected}: {}", told.text());
    }
    let request = Request::get("/v1/prompts/plan/openapi.json").header("authorization", "Bearer secret");
    let described = ai.bench.send(request).await.json();
    let post = &described["paths"]["/v1/prompts/plan/v1"]["post"];
    let schema = &post["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["required"], json!(["days", "guest", "places"]), "those without a default");
    let properties = &schema["properties"];
    assert_eq!(properties["tone"]["enum"], json!(["formal", "easy"]));
    assert_eq!(
        (&properties["tone"]["default"], &properties["rate"]["default"]),
        (&json!("easy"), &json!(1.5))
    );
    assert_eq!(properties["days"], json!({"type": "integer", "minimum": 1.0, "maximum": 14.0}));
    assert_eq!(properties["places"]["items"], json!({"type": "string", "maxLength": 5}));
    assert_eq!(
        (&post["parameters"][0]["name"], &post["parameters"][0]["in"]),
        (&json!("model"), &json!("query"))
    );
    assert_eq!(post["parameters"][0]["schema"]["default"], "usual");
}

#[tokio::test]
async fn an_input_whose_schema_makes_no_sense_is_named() {
    let ai = Ai::start().await;
    for (input, expected) in [
        (json!({"enum": ["a"], "default": "b"}), "spec.inputs[tone].default: is none of the values"),
        (
            json!({"minimum": 1}),
            "spec.inputs[tone].minimum: is for inputs of type number and integer, not string",
        ),
        (json!({"type": "Number", "maxItems": 1}), "spec.inputs[tone].maxItems: is for inputs of type array"),
        (json!({"type": "Array", "items": {"pattern": "("}}), "is not an expression that can be used"),
        (json!({"type": "Array", "items": 7}), "is not a schema"),
        (json!({"maxLength": 1, "default": "ab"}), "at most 1 bytes"),
    ] {
        let mut inputs = inputs();
        inputs["tone"] = input;
        ai.bench.put("PromptTemplate", "plan", prompt(inputs)).await;
        let report = ai.bench.handle.report(&id("PromptTemplate", "plan")).unwrap();
        assert!(report.accepted.message.contains(expected), "{expected}: {report}");
    }
}

#[tokio::test]
async fn a_client_may_name_another_model_that_its_key_may_call() {
    let ai = Ai::start().await;
    for model in ["usual", "other", "secret"] {
        ai.model(model, &[("openai", &format!("echo-{model}"))]).await;
    }
    ai.policy(json!({"keys": [
        {"name": "jane", "sha256": sha256("both"), "models": ["usual", "other"]},
        {"name": "joe", "sha256": sha256("one"), "models": ["other"]},
    ]}))
    .await;
    let spec = json!({"gateway": "main", "prompt": "plan", "model": "usual", "template": "hi"});
    ai.bench.put("PromptTemplate", "plan", spec).await;
    let ask = async |key: &str, query: &str| {
        let path = format!("{PATH}{query}");
        let told = send(ai.bench.address, Ai::request(&path, &json!({}), Some(key))).await;
        let model = told.json()["model"].as_str().map(str::to_owned);
        (told.status.as_u16(), model)
    };
    assert_eq!(ask("both", "").await, (200, Some("usual".into())));
    assert_eq!(ask("both", "?model=other").await, (200, Some("other".into())));
    let sent: Value = serde_json::from_slice(&ai.mock.last().unwrap().1).unwrap();
    assert_eq!(sent["model"], "echo-other");
    assert_eq!(ask("one", "?model=other").await, (200, Some("other".into())), "the usual one is not for it");
    let before = ai.mock.requests();
    for (key, query) in
        [("both", "?model=secret"), ("both", "?model=nobody"), ("one", ""), ("one", "?model=usual")]
    {
        assert_eq!(ask(key, query).await, (404, None), "{key} {query}");
    }
    assert_eq!(ai.mock.requests(), before);
}
