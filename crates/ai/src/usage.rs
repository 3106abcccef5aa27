use serde_json::{Value, json};

use crate::json::number;

/// How many tokens a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All tokens of the prompt, cached ones included.
    pub input: u64,
    /// Those of the prompt that came from a cache.
    pub cached: u64,
    /// Those of the prompt that were written to a cache.
    pub cache_written: u64,
    /// All tokens that the model wrote, thoughts included.
    pub output: u64,
    /// Those of its thoughts.
    pub reasoning: u64,
}

impl Usage {
    /// All tokens.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// What is known after another word of the provider: numbers of a stream only grow.
    pub fn merged(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached: self.cached.max(other.cached),
            cache_written: self.cache_written.max(other.cache_written),
            output: self.output.max(other.output),
            reasoning: self.reasoning.max(other.reasoning),
        }
    }

    /// `usage` of chat completions and embeddings.
    pub(crate) fn from_openai(usage: &Value) -> Option<Self> {
        let input = number(usage, "prompt_tokens")?;
        Some(Self {
            input,
            cached: number(&usage["prompt_tokens_details"], "cached_tokens").unwrap_or(0),
            cache_written: 0,
            output: number(usage, "completion_tokens").unwrap_or(0),
            reasoning: number(&usage["completion_tokens_details"], "reasoning_tokens").unwrap_or(0),
        })
    }

    pub(crate) fn to_openai(self) -> Value {
        json!({
            "prompt_tokens": self.input,
            "completion_tokens": self.output,
            "total_tokens": self.total(),
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning},
        })
    }

    /// `usage` of responses.
    pub(crate) fn from_responses(usage: &Value) -> Option<Self> {
        Some(Self {
            input: number(usage, "input_tokens")?,
            cached: number(&usage["input_tokens_details"], "cached_tokens").unwrap_or(0),
            cache_written: 0,
            output: number(usage, "output_tokens").unwrap_or(0),
            reasoning: number(&usage["output_tokens_details"], "reasoning_tokens").unwrap_or(0),
        })
    }

    pub(crate) fn to_responses(self) -> Value {
        json!({
            "input_tokens": self.input,
            "input_tokens_details": {"cached_tokens": self.cached},
            "output_tokens": self.output,
            "output_tokens_details": {"reasoning_tokens": self.reasoning},
            "total_tokens": self.total(),
        })
    }

    /// `usage` of messages. What came from a cache is not among `input_tokens` there.
    pub(crate) fn from_anthropic(usage: &Value) -> Option<Self> {
        let (input, output) = (number(usage, "input_tokens"), number(usage, "output_tokens"));
        if input.is_none() && output.is_none() {
            return None;
        }
        let cached = number(usage, "cache_read_input_tokens").unwrap_or(0);
        let cache_written = number(usage, "cache_creation_input_tokens").unwrap_or(0);
        Some(Self {
            input: input.unwrap_or(0).saturating_add(cached).saturating_add(cache_written),
            cached,
            cache_written,
            output: output.unwrap_or(0),
            reasoning: 0,
        })
    }

    pub(crate) fn to_anthropic(self) -> Value {
        json!({
            "input_tokens": self.input.saturating_sub(self.cached).saturating_sub(self.cache_written),
            "cache_read_input_tokens": self.cached,
            "cache_creation_input_tokens": self.cache_written,
            "output_tokens": self.output,
        })
    }

    /// `usageMetadata` of generated content. Thoughts are not among the tokens of candidates there.
    pub(crate) fn from_gemini(usage: &Value) -> Option<Self> {
        let reasoning = number(usage, "thoughtsTokenCount").unwrap_or(0);
        let output = number(usage, "candidatesTokenCount").unwrap_or(0);
        Some(Self {
            input: number(usage, "promptTokenCount")?,
            cached: number(usage, "cachedContentTokenCount").unwrap_or(0),
            cache_written: 0,
            output: output.saturating_add(reasoning),
            reasoning,
        })
    }

    pub(crate) fn to_gemini(self) -> Value {
        let mut usage = json!({
            "promptTokenCount": self.input,
            "candidatesTokenCount": self.output.saturating_sub(self.reasoning),
            "totalTokenCount": self.total(),
        });
        if self.reasoning > 0 {
            usage["thoughtsTokenCount"] = self.reasoning.into();
        }
        if self.cached > 0 {
            usage["cachedContentTokenCount"] = self.cached.into();
        }
        usage
    }
}
