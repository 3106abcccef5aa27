use serde_json::{Map, Value, json};
use watchkeeper_go::base64;

use crate::json::{number, set, strict_list, text};
use crate::{ApiError, Dialect, ErrorKind, Stamp, Usage};

/// Texts to be made vectors of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmbeddingRequest {
    /// The model.
    pub model: String,
    /// The texts.
    pub inputs: Vec<String>,
    /// How many numbers a vector has.
    pub dimensions: Option<u64>,
    /// Whether vectors are wanted as base64 of their bytes: clients of OpenAI ask for it.
    pub base64: bool,
    /// Whether one text was asked for, not a list of one: Gemini answers these differently.
    pub single: bool,
}

/// Vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmbeddingResponse {
    /// A vector for each text.
    pub vectors: Vec<Vec<f64>>,
    /// What was used.
    pub usage: Option<Usage>,
}

impl EmbeddingRequest {
    /// Reads a request of a client.
    ///
    /// # Errors
    ///
    /// What cannot be said in other dialects, or is not of this one.
    pub fn read(dialect: Dialect, body: &Value) -> Result<Self, ApiError> {
        match dialect {
            Dialect::GeminiEmbeddings => Self::read_gemini(body),
            _ => Self::read_openai(body),
        }
    }

    fn read_openai(body: &Value) -> Result<Self, ApiError> {
        let inputs = match &body["input"] {
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| {
                    ApiError::invalid(
                        "input: only texts can be translated for the provider of this model, not tokens",
                    )
                })?,
            _ => return Err(ApiError::invalid("input: is missing")),
        };
        Ok(Self {
            model: text(body, "model").unwrap_or_default().to_owned(),
            single: inputs.len() == 1,
            inputs,
            dimensions: number(body, "dimensions"),
            base64: text(body, "encoding_format") == Some("base64"),
        })
    }

    fn read_gemini(body: &Value) -> Result<Self, ApiError> {
        let said = |content: &Value| {
            let parts = content["parts"].as_array().into_iter().flatten();
            parts.filter_map(|part| text(part, "text")).collect::<Vec<_>>().join("")
        };
        let requests = strict_list(body, "requests")?;
        let single = requests.is_empty();
        let inputs = match single {
            true => vec![said(&body["content"])],
            false => requests.iter().map(|request| said(&request["content"])).collect(),
        };
        let first = requests.first().unwrap_or(body);
        let dimensions = number(first, "outputDimensionality");
        Ok(Self { model: String::new(), inputs, dimensions, base64: false, single })
    }

    /// Writes a request for a provider. Gemini gets a list, always.
    pub fn write(&self, dialect: Dialect) -> Value {
        let mut body = Map::new();
        if dialect == Dialect::GeminiEmbeddings {
            let write = |input: &String| {
                let mut one = Map::new();
                one.insert("model".into(), format!("models/{}", self.model).into());
                one.insert("content".into(), json!({"parts": [{"text": input}]}));
                set(&mut one, "outputDimensionality", self.dimensions);
                Value::from(one)
            };
            body.insert("requests".into(), self.inputs.iter().map(write).collect());
            return body.into();
        }
        body.insert("model".into(), self.model.as_str().into());
        body.insert("input".into(), self.inputs.clone().into());
        body.insert("encoding_format".into(), "float".into());
        set(&mut body, "dimensions", self.dimensions);
        body.into()
    }
}

impl EmbeddingResponse {
    /// Reads a response of a provider.
    ///
    /// # Errors
    ///
    /// If it is not one.
    pub fn read(dialect: Dialect, body: &Value) -> Result<Self, ApiError> {
        let numbers =
            |vector: &Value| -> Option<Vec<f64>> { vector.as_array()?.iter().map(Value::as_f64).collect() };
        let vectors = match dialect {
            Dialect::GeminiEmbeddings => {
                let single = body.get("embedding").map(std::slice::from_ref);
                let all = body["embeddings"].as_array().map(Vec::as_slice).or(single).unwrap_or_default();
                all.iter().map(|one| numbers(&one["values"])).collect::<Option<Vec<_>>>()
            }
            _ => body["data"]
                .as_array()
                .and_then(|data| data.iter().map(|one| numbers(&one["embedding"])).collect()),
        };
        match vectors {
            Some(vectors) => Ok(Self { vectors, usage: dialect.usage(body) }),
            None => Err(ApiError::new(ErrorKind::Provider, "the provider answered without vectors")),
        }
    }

    /// Writes a response for a client.
    pub fn write(&self, dialect: Dialect, request: &EmbeddingRequest, stamp: &Stamp) -> Value {
        if dialect == Dialect::GeminiEmbeddings {
            let write = |vector: &Vec<f64>| json!({"values": vector});
            return match (request.single, self.vectors.first()) {
                (true, Some(only)) => json!({"embedding": write(only)}),
                _ => json!({"embeddings": self.vectors.iter().map(write).collect::<Vec<_>>()}),
            };
        }
        let write = |(at, vector): (usize, &Vec<f64>)| {
            let embedding = if request.base64 { base64_of(vector).into() } else { json!(vector) };
            json!({"object": "embedding", "index": at, "embedding": embedding})
        };
        let usage = self.usage.unwrap_or_default();
        json!({
            "object": "list",
            "data": self.vectors.iter().enumerate().map(write).collect::<Vec<_>>(),
            "model": stamp.model,
            "usage": {"prompt_tokens": usage.input, "total_tokens": usage.input},
        })
    }
}

/// The numbers as little-endian floats of 32 bits, in base64.
fn base64_of(vector: &[f64]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect();
    base64::encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_written_as_clients_of_openai_read_them() {
        // struct.pack("<2f", 1.0, -0.5) in base64.
        assert_eq!(base64_of(&[1.0, -0.5]), "AACAPwAAAL8=");
    }

    #[test]
    fn texts_go_to_gemini_and_vectors_come_back() {
        let body = json!({"model": "m", "input": ["a", "b"], "dimensions": 2});
        let mut request = EmbeddingRequest::read(Dialect::OpenAiEmbeddings, &body).unwrap();
        request.model = "gemini-embedding-001".into();
        let sent = request.write(Dialect::GeminiEmbeddings);
        assert_eq!(sent["requests"][1]["content"]["parts"][0]["text"], "b");
        assert_eq!(sent["requests"][0]["outputDimensionality"], 2);
        let answer = json!({"embeddings": [{"values": [1.0, 2.0]}, {"values": [3.0, 4.0]}]});
        let response = EmbeddingResponse::read(Dialect::GeminiEmbeddings, &answer).unwrap();
        let told = response.write(
            Dialect::OpenAiEmbeddings,
            &request,
            &Stamp { model: "m".into(), ..Stamp::default() },
        );
        assert_eq!(told["data"][1]["embedding"], json!([3.0, 4.0]));
        assert!(EmbeddingResponse::read(Dialect::OpenAiEmbeddings, &json!({"html": 1})).is_err());
    }
}
