//! The protobuf form of Swagger documents: the messages of `openapi.v2`, written from their JSON.

use serde_json::{Map, Value};

/// A document that grows by paths and definitions.
pub(super) struct Document {
    head: Message,
    paths: Message,
    definitions: Message,
}

impl Document {
    pub(super) fn new(title: &str, version: &str) -> Self {
        let mut info = Message::default();
        info.text(1, title);
        info.text(2, version);
        let mut head = Message::default();
        head.text(1, "2.0");
        head.message(2, &info);
        Self { head, paths: Message::default(), definitions: Message::default() }
    }

    pub(super) fn path(&mut self, path: &str, item: &Value) {
        self.paths.named(2, path, &path_item(item));
    }

    pub(super) fn definition(&mut self, name: &str, definition: &Value) {
        self.definitions.named(1, name, &schema(definition));
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.head.message(8, &self.paths);
        self.head.message(9, &self.definitions);
        self.head.bytes
    }
}

/// An encoded message.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn delimited(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        if !text.is_empty() {
            self.delimited(field, text.as_bytes());
        }
    }

    fn texts(&mut self, field: u64, texts: Option<&Value>) {
        for text in texts.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            self.delimited(field, text.as_bytes());
        }
    }

    fn flag(&mut self, field: u64, flag: bool) {
        if flag {
            self.varint(field << 3);
            self.varint(1);
        }
    }

    fn integer(&mut self, field: u64, number: i64) {
        self.varint(field << 3);
        self.varint(number as u64);
    }

    fn float(&mut self, field: u64, number: f64) {
        self.varint(field << 3 | 1);
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.delimited(field, &message.bytes);
    }

    /// A message of a name and a value.
    fn named(&mut self, field: u64, name: &str, value: &Message) {
        let mut pair = Message::default();
        pair.delimited(1, name.as_bytes());
        pair.message(2, value);
        self.message(field, &pair);
    }

    /// Any JSON, as YAML.
    fn any(&mut self, field: u64, value: &Value) {
        let mut any = Message::default();
        any.text(2, &format!("{value}\n"));
        self.message(field, &any);
    }

    /// The fields that begin with `x-`.
    fn extensions(&mut self, field: u64, fields: &Map<String, Value>) {
        for (name, value) in fields.iter().filter(|(name, _)| name.starts_with("x-")) {
            let mut any = Message::default();
            any.text(2, &format!("{value}\n"));
            self.named(field, name, &any);
        }
    }
}

fn fields_of(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::OnceLock<Map<String, Value>> = std::sync::OnceLock::new();
    value.as_object().unwrap_or_else(|| EMPTY.get_or_init(Map::new))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (method, field) in [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("patch", 8)] {
        if let Some(operation) = item.get(method) {
            message.message(field, &self::operation(operation));
        }
    }
    parameters(&mut message, 9, item);
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, operation.get("tags"));
    message.text(3, text(operation, "description"));
    message.text(5, text(operation, "operationId"));
    message.texts(6, operation.get("produces"));
    message.texts(7, operation.get("consumes"));
    parameters(&mut message, 8, operation);
    let mut responses = Message::default();
    for (code, response) in fields_of(&operation["responses"]) {
        let mut body = Message::default();
        body.text(1, text(response, "description"));
        if let Some(schema) = response.get("schema") {
            let mut item = Message::default();
            item.message(1, &self::schema(schema));
            body.message(2, &item);
        }
        let mut value = Message::default();
        value.message(1, &body);
        responses.named(1, code, &value);
    }
    message.message(9, &responses);
    message.texts(10, operation.get("schemes"));
    message.extensions(13, fields_of(operation));
    message
}

fn parameters(message: &mut Message, field: u64, holder: &Value) {
    for parameter in holder["parameters"].as_array().into_iter().flatten() {
        let mut kind = Message::default();
        match text(parameter, "in") {
            "body" => kind.message(1, &body_parameter(parameter)),
            place => {
                let mut non_body = Message::default();
                let of_path = place == "path";
                non_body.message(if of_path { 4 } else { 3 }, &plain_parameter(parameter, of_path));
                kind.message(2, &non_body);
            }
        }
        let mut item = Message::default();
        item.message(1, &kind);
        message.message(field, &item);
    }
}

fn body_parameter(parameter: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, text(parameter, "description"));
    message.text(2, text(parameter, "name"));
    message.text(3, "body");
    message.flag(4, parameter["required"] == true);
    message.message(5, &schema(&parameter["schema"]));
    message
}

/// A parameter of the query or the path; from the type on, the numbers of the fields differ by one.
fn plain_parameter(parameter: &Value, of_path: bool) -> Message {
    let mut message = Message::default();
    message.flag(1, parameter["required"] == true);
    message.text(2, text(parameter, "in"));
    message.text(3, text(parameter, "description"));
    message.text(4, text(parameter, "name"));
    let shift = u64::from(!of_path);
    message.text(5 + shift, text(parameter, "type"));
    message.flag(19 + shift, parameter["uniqueItems"] == true);
    message
}

fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    let fields = fields_of(value);
    for (name, field) in [("$ref", 1), ("format", 2), ("title", 3), ("description", 4), ("pattern", 13)] {
        message.text(field, text(value, name));
    }
    if let Some(default) = fields.get("default") {
        message.any(5, default);
    }
    for (name, field) in [("multipleOf", 6), ("maximum", 7), ("minimum", 9)] {
        if let Some(number) = value[name].as_f64() {
            message.float(field, number);
        }
    }
    for (name, field) in [("exclusiveMaximum", 8), ("exclusiveMinimum", 10), ("uniqueItems", 16)] {
        message.flag(field, value[name] == true);
    }
    for (name, field) in [
        ("maxLength", 11),
        ("minLength", 12),
        ("maxItems", 14),
        ("minItems", 15),
        ("maxProperties", 17),
        ("minProperties", 18),
    ] {
        if let Some(number) = value[name].as_i64() {
            message.integer(field, number);
        }
    }
    message.texts(19, fields.get("required"));
    for one in value["enum"].as_array().into_iter().flatten() {
        message.any(20, one);
    }
    additional(&mut message, fields.get("additionalProperties"));
    if !text(value, "type").is_empty() {
        let mut kind = Message::default();
        kind.text(1, text(value, "type"));
        message.message(22, &kind);
    }
    if let Some(items) = fields.get("items") {
        let mut item = Message::default();
        item.message(1, &schema(items));
        message.message(23, &item);
    }
    if let Some(Value::Object(properties)) = fields.get("properties") {
        let mut all = Message::default();
        for (name, property) in properties {
            all.named(1, name, &schema(property));
        }
        message.message(25, &all);
    }
    if let Some(example) = fields.get("example") {
        message.any(30, example);
    }
    message.extensions(31, fields);
    message
}

fn additional(message: &mut Message, additional: Option<&Value>) {
    let mut item = Message::default();
    match additional {
        None => return,
        Some(Value::Bool(allowed)) => {
            item.varint(2 << 3);
            item.varint(u64::from(*allowed));
        }
        Some(schema) => item.message(1, &self::schema(schema)),
    }
    message.message(21, &item);
}
