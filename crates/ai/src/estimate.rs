use std::fmt;

use memchr::memmem;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Bytes of text for each token that is reserved. English has about four, Chinese three: a text of other signs may have fewer.
const BYTES_PER_TOKEN: u64 = 3;
/// Tokens that are always reserved, for what the vendor puts around a prompt.
const OVERHEAD: u64 = 16;
/// Tokens that are reserved for an image, or a file that the provider fetches.
const MEDIA_TOKENS: u64 = 2_000;
/// Where images are that may be URLs of data. Places in lists are left out.
const IMAGE_URLS: [&str; 4] = [
    "messages.content.image_url.url",
    "input.content.image_url",
    "input.output.image_url",
    "messages.content.source.url",
];
/// Where the bytes of media are; a field beside them tells the type.
const MEDIA_DATA: [&str; 4] = [
    "messages.content.source.data",
    "messages.content.content.source.data",
    "contents.parts.inlineData.data",
    "contents.parts.inline_data.data",
];
/// Where files are named that the provider has or fetches.
const FILES: [&str; 8] = [
    "messages.content.content.source.url",
    "messages.content.source.file_id",
    "messages.content.file.file_id",
    "input.content.file_id",
    "input.content.file_url",
    "contents.parts.fileData.fileUri",
    "contents.parts.file_data.file_uri",
    "messages.content.content.source.file_id",
];
/// Words without which a request has no media.
const WORDS: [&[u8]; 5] = [b"image", b"source", b"file", b"inlineData", b"inline_data"];

/// How many tokens the prompt of a request will be, rather too many than too few.
///
/// All bytes of the JSON count, three for a token. Images count 2,000 tokens each, whatever their size, and so do files that are only named. An image
/// is what stands where the dialects have images, has an image's type, and has no letters but those of base64; any other text counts by its bytes.
pub fn tokens_of(body: &[u8]) -> u64 {
    let mut walk = Walk::default();
    if WORDS.iter().any(|word| memmem::find(body, word).is_some()) {
        let mut deserializer = serde_json::Deserializer::from_slice(body);
        if Place(&mut walk).deserialize(&mut deserializer).is_err() {
            walk = Walk::default(); // nothing is known of it: all of it counts
        }
    }
    let text = (body.len() as u64).saturating_sub(walk.spared);
    text.div_ceil(BYTES_PER_TOKEN) + walk.media.saturating_mul(MEDIA_TOKENS) + OVERHEAD
}

/// What was found on the way through a request.
#[derive(Default)]
struct Walk {
    /// Names of fields, with dots between them.
    path: String,
    /// Images and files.
    media: u64,
    /// Bytes that are no text.
    spared: u64,
}

/// A value of a request.
struct Place<'w>(&'w mut Walk);

/// What an object has to know of its fields.
enum Found {
    Other,
    /// So many bytes in base64.
    Data(u64),
    /// The type of an image.
    ImageType,
}

fn is_base64(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte))
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<Found, E> {
        let walk = self.0;
        let path = walk.path.as_str();
        if IMAGE_URLS.contains(&path) {
            walk.media += 1;
            let data = text.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
            if data.is_some_and(|(_, data)| is_base64(data)) {
                walk.spared += text.len() as u64;
            }
        } else if FILES.contains(&path) {
            walk.media += 1;
        } else if MEDIA_DATA.contains(&path) && is_base64(text) {
            return Ok(Found::Data(text.len() as u64));
        } else if text.starts_with("image/") {
            return Ok(Found::ImageType);
        }
        Ok(Found::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        while list.next_element_seed(Place(&mut *self.0))?.is_some() {}
        Ok(Found::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Found, A::Error> {
        let walk = self.0;
        let (mut data, mut is_image) = (None, false);
        while let Some(name) = fields.next_key::<std::borrow::Cow<'_, str>>()? {
            let before = walk.path.len();
            // Nothing that is looked for is as deep, or has such a name.
            if before > 64 || name.contains('.') {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            if before > 0 {
                walk.path.push('.');
            }
            walk.path.push_str(&name);
            match fields.next_value_seed(Place(&mut *walk))? {
                Found::Data(bytes) => data = Some(bytes),
                Found::ImageType => is_image |= ["media_type", "mimeType", "mime_type"].contains(&&*name),
                Found::Other => {}
            }
            walk.path.truncate(before);
        }
        if let Some(bytes) = data.filter(|_| is_image) {
            walk.media += 1;
            walk.spared += bytes;
        }
        Ok(Found::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Other)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(body: &Value) -> u64 {
        tokens_of(body.to_string().as_bytes())
    }

    /// An image of so many bytes, as each dialect has it.
    fn images(bytes: usize) -> [Value; 4] {
        let data = "iVBORw0KGgo+/".chars().cycle().take(bytes).collect::<String>();
        let url = format!("data:image/png;base64,{data}");
        [
            json!({"messages": [{"content": [{"type": "image_url", "image_url": {"url": url}}]}]}),
            json!({"input": [{"content": [{"type": "input_image", "image_url": url}]}]}),
            json!({"messages": [{"content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]}]}),
            json!({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}]}),
        ]
    }

    #[test]
    fn images_count_the_same_whatever_their_size() {
        for (small, large) in images(10_000).iter().zip(images(1_000_000)) {
            assert_eq!(of(small), of(&large));
            assert!((2_000..2_200).contains(&of(small)), "{}", of(small));
        }
    }

    #[test]
    fn an_image_that_is_only_named_counts_as_one() {
        let url = "https://example.com/a.png";
        for body in [
            json!({"messages": [{"content": [{"type": "image_url", "image_url": {"url": url}}, {"type": "image_url", "image_url": {"url": url}}]}]}),
            json!({"input": [{"content": [{"type": "input_image", "image_url": url}, {"type": "input_file", "file_id": "f"}]}]}),
            json!({"messages": [{"content": [{"source": {"type": "url", "url": url}}, {"source": {"type": "file", "file_id": "f"}}]}]}),
            json!({"contents": [{"parts": [{"fileData": {"fileUri": url}}, {"file_data": {"file_uri": url}}]}]}),
        ] {
            assert!((4_000..4_200).contains(&of(&body)), "{body}: {}", of(&body));
        }
    }

    #[test]
    fn text_counts_by_its_bytes_whatever_it_looks_like() {
        let bound = |text: &str| text.len() as u64 / 3;
        for text in ["\u{6f22}\u{5b57}".repeat(500_000), "word ".repeat(10_000), "A".repeat(100_000)] {
            let data = format!("data:image/png;base64,{text}");
            for body in [
                json!({"messages": [{"content": text}]}),
                json!({"messages": [{"content": [{"type": "text", "text": data}]}], "image": 1}),
                json!({"messages": [{"tool_calls": [{"image_url": {"url": data}}]}]}),
                json!({"tools": [{"input_schema": {"source": {"media_type": "image/png", "data": text}}}]}),
                json!({"messages.content.image_url.url": data}),
                json!({"messages": [{"content": [{"source": {"media_type": "application/pdf", "data": text}}]}]}),
            ] {
                assert!(of(&body) >= bound(&text), "{}", of(&body));
            }
        }
        let signs = "\u{6f22}".repeat(1_000_000);
        let body = json!({"messages": [{"content": [{"image_url": {"url": format!("data:image/png;base64,{signs}")}}]}]});
        assert!(of(&body) >= bound(&signs), "only base64 is an image");
    }
}
