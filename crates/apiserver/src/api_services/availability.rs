//! Whether the server of an APIService can be reached, as its condition says.

use serde_json::{Value, json};

/// What was found behind the Service that an APIService names.
pub(crate) struct Backend {
    /// The Service, if there is one.
    pub(crate) service: Option<Value>,
    /// The EndpointSlices of the Service.
    pub(crate) slices: Vec<Value>,
}

/// The condition of an APIService that names a Service of which something is missing, without its time: why it is not available. `None`
/// if nothing is, and the other server can be asked. Reasons and messages are those of kube-apiserver.
pub(crate) fn condition(spec: &Value, backend: &Backend) -> Option<Value> {
    let text = |name: &str| spec["service"][name].as_str().unwrap_or_default();
    let (name, namespace) = (text("name"), text("namespace"));
    let port = spec["service"]["port"].as_i64().unwrap_or(443);
    let unavailable = |reason: &str, message: String| Some(unavailable(reason, &message));
    let Some(service) = &backend.service else {
        let message = format!("service/{name} in {namespace:?} is not present");
        return unavailable("ServiceNotFound", message);
    };
    if service["spec"]["type"] == "ClusterIP" {
        let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
        let Some(found) = ports.find(|found| found["port"] == port) else {
            let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
            return unavailable("ServicePortError", message);
        };
        if backend.slices.is_empty() {
            let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
            return unavailable("EndpointsNotFound", message);
        }
        let port_name = found["name"].as_str().unwrap_or_default();
        if !backend.slices.iter().any(|slice| has_endpoint(slice, port_name)) {
            let message = format!(
                "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port_name:?}"
            );
            return unavailable("MissingEndpoints", message);
        }
    }
    None
}

/// The condition of an APIService whose server was asked.
pub(crate) fn asked(answer: Result<(), String>) -> Value {
    match answer {
        Ok(()) => {
            json!({"type": "Available", "status": "True", "reason": "Passed", "message": "all checks passed"})
        }
        Err(why) => unavailable("FailedDiscoveryCheck", &why),
    }
}

fn unavailable(reason: &str, message: &str) -> Value {
    json!({"type": "Available", "status": "False", "reason": reason, "message": message})
}

fn has_endpoint(slice: &Value, port_name: &str) -> bool {
    let any = |list: &str, wanted: &dyn Fn(&Value) -> bool| {
        slice[list].as_array().into_iter().flatten().any(wanted)
    };
    any("endpoints", &|endpoint| endpoint["conditions"]["ready"] != false)
        && any("ports", &|port| port["name"] == port_name && port["port"].is_number())
}

/// Puts a condition into the status of an APIService; its time is that of the last change of its status.
pub(crate) fn set_condition(object: &mut Value, mut condition: Value, now: &str) {
    let conditions = &mut object["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            let is_same = known["status"] == condition["status"];
            condition["lastTransitionTime"] =
                if is_same { known["lastTransitionTime"].clone() } else { now.into() };
            *known = condition;
        }
        None => {
            condition["lastTransitionTime"] = now.into();
            conditions.push(condition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_that_is_missing_is_the_reason() {
        let spec = json!({"service": {"namespace": "n", "name": "s", "port": 443}});
        let service =
            |port: i64| json!({"spec": {"type": "ClusterIP", "ports": [{"name": "https", "port": port}]}});
        let slice = |ready: bool| json!({"endpoints": [{"conditions": {"ready": ready}}], "ports": [{"name": "https", "port": 1}]});
        for (service, slices, reason, message) in [
            (None, vec![], "ServiceNotFound", r#"service/s in "n" is not present"#),
            (
                Some(service(80)),
                vec![],
                "ServicePortError",
                r#"service/s in "n" is not listening on port 443"#,
            ),
            (
                Some(service(443)),
                vec![],
                "EndpointsNotFound",
                r#"cannot find endpointslices for service/s in "n""#,
            ),
            (
                Some(service(443)),
                vec![slice(false)],
                "MissingEndpoints",
                r#"endpointslices for service/s in "n" have no addresses with port name "https""#,
            ),
        ] {
            let said = condition(&spec, &Backend { service, slices }).unwrap();
            assert_eq!((&said["reason"], &said["message"]), (&json!(reason), &json!(message)));
            assert_eq!(said["status"], "False");
        }
        let complete = [
            Backend { service: Some(service(443)), slices: vec![slice(false), slice(true)] },
            Backend { service: Some(json!({"spec": {"type": "ExternalName"}})), slices: vec![] },
        ];
        assert!(complete.iter().all(|backend| condition(&spec, backend).is_none()), "nothing is missing");
    }

    #[test]
    fn a_condition_that_keeps_its_status_keeps_its_time() {
        let mut object = json!({});
        let of =
            |status: &str, reason: &str| json!({"type": "Available", "status": status, "reason": reason});
        let mut after = |condition: Value, now: &str| {
            set_condition(&mut object, condition, now);
            object["status"]["conditions"][0]["lastTransitionTime"].clone()
        };
        assert_eq!(after(of("False", "A"), "1"), "1");
        assert_eq!(after(of("False", "B"), "2"), "1");
        assert_eq!(after(of("True", "B"), "3"), "3");
        assert_eq!(object["status"]["conditions"].as_array().unwrap().len(), 1);
    }
}
