use crate::Usage;

/// A conversation to be continued, whatever dialect it was written in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// The model.
    pub model: String,
    /// What the model is told before the conversation.
    pub system: Vec<String>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    /// Whether it has to.
    pub tool_choice: Option<ToolChoice>,
    /// Whether it may call several at once.
    pub parallel_tools: Option<bool>,
    /// How much it may write.
    pub max_tokens: Option<u64>,
    /// Randomness.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Sampling among the most likely.
    pub top_k: Option<u64>,
    /// Where it stops.
    pub stop: Vec<String>,
    /// The form of what it writes.
    pub format: Option<Format>,
    /// How much it thinks: `low`, `medium`, `high` or another word of the vendor.
    pub effort: Option<String>,
    /// Who asks, as the vendor is told.
    pub user: Option<String>,
    /// Whether the answer comes in pieces.
    pub stream: bool,
    /// Whether the client wants to know at the end of a stream what was used.
    pub stream_usage: bool,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The client, also where it hands in results of tools.
    User,
    /// The model.
    Assistant,
}

/// A turn of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
}

/// A piece of a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// What the model thought before it spoke.
    Thinking(String),
    /// An image.
    Image(Image),
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// What a tool returned.
    ToolResult(ToolResult),
}

/// An image.
#[derive(Clone, Debug, PartialEq)]
pub enum Image {
    /// Its bytes.
    Data {
        /// Such as `image/png`.
        media_type: String,
        /// In base64.
        data: String,
    },
    /// Where it is.
    Url(String),
}

impl Image {
    /// Reads a URL, which may be one of data.
    pub fn from_url(url: &str) -> Self {
        let parsed = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match parsed {
            Some((media_type, data)) => {
                Self::Data { media_type: media_type.to_owned(), data: data.to_owned() }
            }
            None => Self::Url(url.to_owned()),
        }
    }

    /// Writes it as a URL.
    pub fn to_url(&self) -> String {
        match self {
            Self::Data { media_type, data } => format!("data:{media_type};base64,{data}"),
            Self::Url(url) => url.clone(),
        }
    }
}

/// A call of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCall {
    /// Which call.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// The arguments, as JSON text: they are passed on as the model wrote them.
    pub arguments: String,
}

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// Which call.
    pub id: String,
    /// Text and images.
    pub content: Vec<Part>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl ToolResult {
    /// All texts of it.
    pub fn text(&self) -> String {
        texts(&self.content)
    }
}

/// All texts of parts, one after the other.
pub(crate) fn texts(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("")
}

/// Something that a model may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub parameters: Option<serde_json::Value>,
    /// Whether arguments have to follow the schema exactly.
    pub strict: Option<bool>,
}

/// Whether tools are to be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model likes.
    Auto,
    /// Not.
    None,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

/// The form of what a model writes.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// Any JSON.
    Json,
    /// JSON of this schema.
    Schema {
        /// Its name.
        name: String,
        /// The JSON Schema.
        schema: serde_json::Value,
        /// Whether it has to be followed exactly.
        strict: Option<bool>,
    },
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatResponse {
    /// Which response.
    pub id: String,
    /// The model that wrote it, as the provider names it.
    pub model: String,
    /// What it wrote.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub stop: Stop,
    /// What was used, as far as the provider says.
    pub usage: Option<Usage>,
}

impl ChatResponse {
    /// All texts of it.
    pub fn text(&self) -> String {
        texts(&self.parts)
    }

    /// The tools that it calls.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// It was done.
    #[default]
    End,
    /// It had written as much as it may.
    Length,
    /// It calls tools.
    Tools,
    /// It came to a text at which it was to stop.
    Sequence,
    /// A filter of the provider.
    Filtered,
}
