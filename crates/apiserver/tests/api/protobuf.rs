//! Protobuf, which typed clients speak unless they are told otherwise.

use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use watchkeeper_apiserver::front::Body;
use watchkeeper_kinds::protobuf;

use crate::harness::{Api, DEFINITIONS, WIDGETS, config_map, definition, spec, widget};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// An answer in protobuf, decoded.
struct Answered {
    code: u16,
    content_type: String,
    object: Value,
}

impl Answered {
    #[track_caller]
    fn ok(self) -> Value {
        assert!(self.code < 300, "{}", self.object);
        assert_eq!(self.content_type, PROTOBUF);
        self.object
    }
}

async fn call(api: &Api, method: &str, path: &str, accept: &str, body: Option<&Value>) -> Answered {
    let bytes = body.map(|body| protobuf::encode(body).unwrap()).unwrap_or_default();
    let request = http::Request::builder().method(method).uri(path).header("accept", accept);
    let response = api.call(request.header(CONTENT_TYPE, PROTOBUF).body(Body::whole(bytes)).unwrap()).await;
    let content_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let object = match content_type.as_str() {
        PROTOBUF => protobuf::decode(&bytes).unwrap(),
        _ => serde_json::from_slice(&bytes).unwrap(),
    };
    Answered { code, content_type, object }
}

/// A watch in protobuf.
struct Frames {
    body: Body,
    rest: Vec<u8>,
}

impl Frames {
    async fn start(api: &Api, path: &str, accept: &str) -> Self {
        let request = http::Request::builder().uri(path).header("accept", accept);
        let response = api.call(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/vnd.kubernetes.protobuf;stream=watch");
        Self { body: response.into_body(), rest: Vec::new() }
    }

    /// The type and the object of the next event.
    async fn next(&mut self) -> (String, Value) {
        loop {
            let length = self.rest.first_chunk::<4>().map(|length| u32::from_be_bytes(*length) as usize);
            if let Some(length) = length.filter(|length| self.rest.len() >= length + 4) {
                let frame: Vec<u8> = self.rest.drain(..length + 4).skip(4).collect();
                // A type, and a message that holds bytes: the lengths of short texts are one byte each.
                let (kind, rest) = frame[2..].split_at(frame[1].into());
                let at = rest.windows(4).position(|window| window == b"k8s\0").unwrap();
                return (String::from_utf8(kind.to_vec()).unwrap(), protobuf::decode(&rest[at..]).unwrap());
            }
            let more = tokio::time::timeout(std::time::Duration::from_secs(20), self.body.frame()).await;
            self.rest.extend_from_slice(&more.unwrap().unwrap().unwrap().into_data().unwrap());
        }
    }
}

/// Without what protobuf does not tell from nothing at all.
fn filled(value: &Value) -> Value {
    let is_something = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    match value {
        Value::Array(items) => items.iter().map(filled).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), filled(value)));
            Value::Object(fields.filter(|(_, value)| is_something(value)).collect())
        }
        value => value.clone(),
    }
}

/// What an object of a kind has at least.
fn sample(kind: &str) -> Value {
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let selector = json!({"matchLabels": {"a": "b"}});
    let set = json!({"spec": {"selector": selector, "template": template}});
    let webhook = json!([{
        "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.com/"},
    }]);
    let devices = json!({"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "c"}}]}});
    let constraints = json!({"resourceRules": [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
    ]});
    match kind {
        "Deployment" | "DaemonSet" | "ReplicaSet" => set,
        "StatefulSet" => json!({"spec": {"serviceName": "s", "selector": selector, "template": template}}),
        "ReplicationController" => json!({"spec": {"selector": {"a": "b"}, "template": template}}),
        "PodTemplate" => json!({"template": template}),
        "Pod" => json!({"spec": template["spec"]}),
        "Job" | "CronJob" => {
            let spec = json!({"template": {"spec": {
                "containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never",
            }}});
            if kind == "Job" {
                return json!({"spec": spec});
            }
            json!({"spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": spec}}})
        }
        "Service" => json!({"spec": {"ports": [{"port": 80}]}}),
        "Event" => json!({"involvedObject": {"namespace": "default"}, "reason": "Because"}),
        "PersistentVolume" => json!({"spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"},
        }}),
        "PersistentVolumeClaim" => {
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
        }
        "CustomResourceDefinition" => {
            let mut definition = definition(spec());
            definition["metadata"] = json!({"name": "widgets.example.com"});
            definition
        }
        "HorizontalPodAutoscaler" => json!({"spec": {
            "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        }}),
        "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]}),
        "Ingress" => json!({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
        "IngressClass" => json!({"spec": {"controller": "example.com/a"}}),
        "PodDisruptionBudget" => json!({"spec": {"minAvailable": "50%", "selector": selector}}),
        "PriorityClass" => json!({"value": 7}),
        "RoleBinding" | "ClusterRoleBinding" => {
            json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}})
        }
        "StorageClass" => json!({"provisioner": "example.com/p"}),
        "APIService" => json!({
            "metadata": {"name": "v1.sample.example.com"},
            "spec": {"group": "sample.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1},
        }),
        "CSIDriver" => json!({"spec": {}}),
        "VolumeAttachment" => json!({"spec": {
            "attacher": "example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"},
        }}),
        "CSINode" => json!({"spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["k"]}]}}),
        "CSIStorageCapacity" => json!({"storageClassName": "s", "capacity": "1Gi"}),
        "VolumeAttributesClass" => json!({"driverName": "d", "parameters": {"a": "b"}}),
        "CertificateSigningRequest" => json!({"spec": {
            "request": watchkeeper_go::base64::encode(include_str!("keys/jane.csr")),
            "signerName": "example.com/client", "usages": ["client auth"],
        }}),
        "IPAddress" => json!({
            "metadata": {"name": "10.1.2.3"}, "spec": {"parentRef": {"resource": "services", "name": "s"}},
        }),
        "ServiceCIDR" => json!({"spec": {"cidrs": ["10.1.0.0/16"]}}),
        "RuntimeClass" => json!({"handler": "h", "overhead": {"podFixed": {"cpu": "1"}}}),
        "ResourceClaim" => json!({"spec": devices}),
        "ResourceClaimTemplate" => json!({"spec": {"spec": devices}}),
        "ResourceSlice" => json!({"spec": {
            "driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "a", "attributes": {"x": {"int": 3}}, "capacity": {"m": {"value": "1Gi"}}}],
        }}),
        "ValidatingAdmissionPolicy" => {
            json!({"spec": {"matchConstraints": constraints, "validations": [{"expression": "true"}]}})
        }
        "MutatingAdmissionPolicy" => json!({"spec": {
            "matchConstraints": constraints, "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}],
        }}),
        "ValidatingAdmissionPolicyBinding" => {
            json!({"spec": {"policyName": "p", "validationActions": ["Deny"]}})
        }
        "MutatingAdmissionPolicyBinding" => json!({"spec": {"policyName": "p"}}),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => json!({"webhooks": webhook}),
        "Lease" => json!({"spec": {"renewTime": "2025-11-15T06:23:41.123456Z", "leaseDurationSeconds": 15}}),
        "ControllerRevision" => json!({"data": {"a": 1}, "revision": 1}),
        "Secret" => json!({"data": {"k": "AAEC"}}),
        "ConfigMap" => json!({"data": {"k": "v"}, "binaryData": {"b": "/w=="}}),
        _ => json!({}),
    }
}

#[tokio::test]
async fn every_built_in_kind_goes_in_and_comes_out() {
    let api = Api::start().await;
    let mut count = 0;
    for kind in watchkeeper_kinds::all().iter().filter(|kind| {
        kind.verbs.names().contains(&"create")
            && kind.verbs.names().contains(&"list")
            && !kind.group.starts_with("flowcontrol")
    }) {
        let mut object = sample(kind.kind);
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.into();
        if object.get("metadata").is_none() {
            object["metadata"] = json!({"name": format!("sample-{}", kind.version)});
        }
        if (kind.group, kind.kind) == ("events.k8s.io", "Event") {
            object = json!({
                "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "new"}, "action": "Do",
                "eventTime": "2025-11-15T06:23:41.123456Z", "reason": "Because", "type": "Normal",
                "reportingController": "example.com/c", "reportingInstance": "c-0",
                "regarding": {"namespace": "default"},
            });
        }
        let root = if kind.group.is_empty() { "/api/v1" } else { &format!("/apis/{}", kind.api_version()) };
        let namespace = if kind.namespaced { "/namespaces/default" } else { "" };
        let all = format!("{root}{namespace}/{}", kind.plural);
        let one = format!("{all}/{}", object["metadata"]["name"].as_str().unwrap());
        let made = call(&api, "POST", &all, PROTOBUF, Some(&object)).await.ok();
        let got = call(&api, "GET", &one, PROTOBUF, None).await.ok();
        let mut json = filled(&api.get(&one).await.ok());
        assert_eq!(filled(&got), json, "{}", kind.kind);
        if kind.kind != "Service" && kind.kind != "CustomResourceDefinition" {
            assert_eq!(made, got, "{}", kind.kind);
        }
        let list = call(&api, "GET", &all, PROTOBUF, None).await.ok();
        assert_eq!(list["kind"], kind.list_kind());
        let names = ["kind", "apiVersion"];
        names.iter().for_each(|name| drop(json.as_object_mut().unwrap().remove(*name)));
        let mut items = list["items"].as_array().unwrap().iter();
        assert!(items.any(|item| filled(item) == json), "{list}");
        let put = call(&api, "PUT", &one, PROTOBUF, Some(&got)).await.ok();
        assert_eq!(put["metadata"]["resourceVersion"], got["metadata"]["resourceVersion"], "{}", kind.kind);
        if kind.has_status() {
            let status = call(&api, "GET", &format!("{one}/status"), PROTOBUF, None).await.ok();
            assert_eq!(status, got, "{}", kind.kind);
        }
        count += 1;
    }
    assert!(count >= 57, "{count}");
}

#[tokio::test]
async fn patches_scales_and_deletions_are_answered_in_protobuf() {
    let api = Api::start().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let mut deployment = sample("Deployment");
    deployment["apiVersion"] = "apps/v1".into();
    deployment["kind"] = "Deployment".into();
    deployment["metadata"] = json!({"name": "d"});
    call(&api, "POST", deployments, PROTOBUF, Some(&deployment)).await.ok();
    let one = format!("{deployments}/d");
    let scale = call(&api, "GET", &format!("{one}/scale"), PROTOBUF, None).await.ok();
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    let mut more = scale.clone();
    more["spec"]["replicas"] = 3.into();
    let scaled = call(&api, "PUT", &format!("{one}/scale"), PROTOBUF, Some(&more)).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 3);
    let request = http::Request::builder().method("PATCH").uri(&one).header("accept", PROTOBUF);
    let request = request.header(CONTENT_TYPE, "application/merge-patch+json");
    let response = api.call(request.body(Body::whole(r#"{"spec":{"paused":true}}"#)).unwrap()).await;
    let patched = protobuf::decode(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!((&patched["spec"]["paused"], &patched["spec"]["replicas"]), (&json!(true), &json!(3)));
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        "preconditions": {"uid": "another"},
    });
    let refused = call(&api, "DELETE", &one, PROTOBUF, Some(&options)).await;
    assert_eq!((refused.code, &refused.object["reason"]), (409, &json!("Conflict")));
    let gone = call(&api, "DELETE", &one, PROTOBUF, None).await.ok();
    assert_eq!((&gone["kind"], &gone["status"]), (&json!("Status"), &json!("Success")));
    let missing = call(&api, "GET", &one, PROTOBUF, None).await;
    assert_eq!((missing.code, missing.content_type.as_str()), (404, PROTOBUF));
    assert_eq!(missing.object["message"], r#"deployments.apps "d" not found"#);
    assert_eq!(missing.object["details"]["kind"], "deployments");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = call(&api, "POST", path, PROTOBUF, Some(&review)).await.ok();
    assert!(review["status"]["userInfo"]["username"].is_string());
}

#[tokio::test]
async fn custom_resources_have_their_metadata_in_protobuf_and_nothing_else() {
    let api = Api::start().await;
    api.define(spec()).await;
    api.post(WIDGETS, widget("a", json!({"size": 1}))).await.ok();
    let one = format!("{WIDGETS}/a");
    let refused = call(&api, "GET", &one, PROTOBUF, None).await;
    assert_eq!((refused.code, refused.content_type.as_str()), (406, PROTOBUF));
    assert_eq!(
        refused.object["message"],
        "only the following media types are accepted: \
         application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
    let both = call(&api, "GET", &one, &format!("{PROTOBUF},application/json"), None).await;
    assert_eq!((both.content_type.as_str(), &both.object["spec"]["size"]), ("application/json", &json!(1)));
    let partial = call(&api, "GET", &one, METADATA, None).await.ok();
    assert_eq!(partial["kind"], "PartialObjectMetadata");
    assert_eq!(filled(&partial["metadata"]), filled(&api.get(&one).await.ok()["metadata"]));
    let list = call(&api, "GET", WIDGETS, METADATA_LIST, None).await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    let mut frames = Frames::start(&api, &format!("{WIDGETS}?watch=1"), METADATA).await;
    let (kind, object) = frames.next().await;
    assert_eq!((kind.as_str(), &object["metadata"]["name"]), ("ADDED", &json!("a")));
    api.merge(&one, json!({"metadata": {"labels": {"x": "y"}}})).await.ok();
    let (kind, object) = frames.next().await;
    assert_eq!((kind.as_str(), &object["kind"]), ("MODIFIED", &json!("PartialObjectMetadata")));
    assert_eq!(object["metadata"]["labels"]["x"], "y");
}

#[tokio::test]
async fn watches_are_framed_with_bookmarks_and_errors() {
    let api = Api::start().await;
    api.post(MAPS, config_map("a", json!({"k": "v"}))).await.ok();
    let streaming =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut frames =
        Frames::start(&api, &format!("{MAPS}?{streaming}&fieldSelector=metadata.name=a"), PROTOBUF).await;
    let (kind, object) = frames.next().await;
    assert_eq!((kind.as_str(), &object), ("ADDED", &api.get(&format!("{MAPS}/a")).await.ok()));
    let (kind, object) = frames.next().await;
    assert_eq!((kind.as_str(), &object["kind"]), ("BOOKMARK", &json!("ConfigMap")));
    assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    api.delete(&format!("{MAPS}/a")).await.ok();
    let (kind, object) = frames.next().await;
    assert_eq!((kind.as_str(), &object["data"]["k"]), ("DELETED", &json!("v")));
    let (one, other) = (api.watch(&format!("{MAPS}?watch=1")).await, format!("{MAPS}?watch=1"));
    let mut both = (one, Frames::start(&api, &other, PROTOBUF).await);
    api.post(MAPS, config_map("z", json!({}))).await.ok();
    let is_z = |object: &Value| object["metadata"]["name"] == "z";
    let json = loop {
        let event = both.0.next().await.unwrap();
        if is_z(&event["object"]) {
            break event["object"].clone();
        }
    };
    let framed = loop {
        let (_, object) = both.1.next().await;
        if is_z(&object) {
            break object;
        }
    };
    assert_eq!(filled(&json), filled(&framed));
}

#[tokio::test]
async fn a_watch_in_protobuf_says_in_protobuf_that_it_is_too_old() {
    let api = Api::start().await;
    let version = api.get(MAPS).await.ok()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    for name in ["a", "b"] {
        api.post(MAPS, config_map(name, json!({}))).await.ok();
    }
    api.storage.compact(api.storage.stats().revision).await.unwrap();
    let mut frames =
        Frames::start(&api, &format!("{MAPS}?watch=1&resourceVersion={version}"), PROTOBUF).await;
    let (kind, object) = frames.next().await;
    assert_eq!((kind.as_str(), &object["reason"]), ("ERROR", &json!("Expired")));
}

#[tokio::test]
async fn lists_in_every_form_are_the_same_however_long_they_are() {
    let api = Api::start().await;
    // More than is kept of a list in protobuf, so that a part of it is encoded twice.
    let text = "x".repeat(100_000);
    for index in 0..60 {
        api.post(MAPS, config_map(&format!("m{index:03}"), json!({"k": text}))).await.ok();
    }
    let json = api.get(MAPS).await.ok();
    let framed = call(&api, "GET", MAPS, PROTOBUF, None).await.ok();
    assert_eq!(filled(&framed), filled(&json));
    let partial = call(&api, "GET", MAPS, METADATA_LIST, None).await.ok();
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let partial_json = api.get_as(MAPS, accept).await.ok();
    assert_eq!(partial["items"].as_array().unwrap().len(), partial_json["items"].as_array().unwrap().len());
    for (index, item) in json["items"].as_array().unwrap().iter().enumerate() {
        assert_eq!(partial_json["items"][index]["metadata"], item["metadata"]);
        assert_eq!(partial["items"][index]["metadata"], item["metadata"]);
    }
    let table = api.get_as(MAPS, "application/json;as=Table;g=meta.k8s.io;v=v1").await.ok();
    assert_eq!(table["rows"].as_array().unwrap().len(), json["items"].as_array().unwrap().len());
    assert_eq!(table["metadata"]["resourceVersion"], json["metadata"]["resourceVersion"]);
    assert_eq!(table["rows"][0]["object"]["metadata"], json["items"][0]["metadata"]);
    let yaml = api.get_as(&format!("{MAPS}?limit=1"), "application/yaml").await;
    assert!(yaml.text.starts_with("apiVersion: v1\n"), "{}", &yaml.text[..100]);
}

#[tokio::test]
async fn discovery_is_there_in_protobuf_too() {
    let api = Api::start().await;
    for (path, kind) in [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/api/v1", "APIResourceList"),
    ] {
        let request = http::Request::builder().uri(path).header("accept", PROTOBUF);
        let response = api.call(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.headers()[CONTENT_TYPE], PROTOBUF, "{path}");
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert!(protobuf::is_envelope(&bytes));
        assert!(bytes.windows(kind.len()).any(|window| window == kind.as_bytes()), "{path}");
    }
    let accept = format!("{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let request = http::Request::builder().uri("/apis").header("accept", &accept);
    let response = api.call(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.headers()[CONTENT_TYPE], accept);
    let list = protobuf::decode(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    let json = accept.replace(PROTOBUF, "application/json");
    assert_eq!(filled(&list), filled(&api.get_as("/apis", &json).await.ok()));
    assert!(api.get(DEFINITIONS).await.code == 200);
}
