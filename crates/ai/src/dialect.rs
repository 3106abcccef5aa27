/// The form in which a vendor writes requests and responses of one of its APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// `POST /v1/chat/completions` of OpenAI, and of the many servers that are compatible.
    OpenAiChat,
    /// `POST /v1/responses` of OpenAI. Clients may speak it; to providers it is passed on, never translated into.
    OpenAiResponses,
    /// `POST /v1/messages` of Anthropic.
    Anthropic,
    /// `POST /v1beta/models/MODEL:generateContent` of Gemini.
    Gemini,
    /// `POST /v1/embeddings` of OpenAI.
    OpenAiEmbeddings,
    /// `POST /v1beta/models/MODEL:embedContent` and `:batchEmbedContents` of Gemini.
    GeminiEmbeddings,
}

/// What a response needs besides what the model wrote, and what only the caller can know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// An identifier, for providers that give none.
    pub id: String,
    /// The model, as the client named it.
    pub model: String,
    /// Now, in seconds since 1970.
    pub created: u64,
    /// Whether the client asked for usage at the end of its stream.
    pub stream_usage: bool,
}

impl Dialect {
    /// Its name, as records and metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic-messages",
            Self::Gemini => "gemini-generate",
            Self::OpenAiEmbeddings => "openai-embeddings",
            Self::GeminiEmbeddings => "gemini-embeddings",
        }
    }

    /// Whether it is about vectors.
    pub fn is_embeddings(self) -> bool {
        matches!(self, Self::OpenAiEmbeddings | Self::GeminiEmbeddings)
    }
}
