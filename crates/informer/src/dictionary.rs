use parking_lot::Mutex;
use zstd::bulk::{Compressor, Decompressor};

/// What the objects of one kind have in common, learned from a sample of them.
///
/// Objects of one kind share their field names, most of their structure and many values; alone, each is too small to
/// compress well, against a dictionary of the kind it shrinks to what is its own.
pub(crate) struct Dictionary {
    bytes: Box<[u8]>,
    compressor: Mutex<Compressor<'static>>,
    /// One for each reader that decompresses at this moment; they are large, so they are kept.
    decompressors: Mutex<Vec<Decompressor<'static>>>,
}

/// A dictionary larger than this gains little; smaller than the sample it is learned from by a factor of ten or more.
const DICTIONARY_BYTES: usize = 64 << 10;
/// Objects and bytes to learn from.
pub(crate) const SAMPLE_OBJECTS: usize = 512;
pub(crate) const SAMPLE_BYTES: usize = 2 << 20;
/// Levels above this cost much and gain a few percent here.
const LEVEL: i32 = 3;

impl Dictionary {
    /// Learns from samples. `None` if they have too little in common, or are too few.
    pub(crate) fn learn(samples: &[Vec<u8>]) -> Option<Self> {
        let size = DICTIONARY_BYTES.min(samples.iter().map(Vec::len).sum::<usize>() / 8);
        let bytes = zstd::dict::from_samples(samples, size).ok()?.into_boxed_slice();
        let compressor = Mutex::new(Compressor::with_dictionary(LEVEL, &bytes).ok()?);
        Some(Self { bytes, compressor, decompressors: Mutex::default() })
    }

    /// The compressed bytes, unless that would not save anything worth the trouble.
    pub(crate) fn compress(&self, json: &[u8]) -> Option<Box<[u8]>> {
        let bytes = self.compressor.lock().compress(json).ok()?;
        (bytes.len() < json.len() - json.len() / 8).then(|| bytes.into_boxed_slice())
    }

    pub(crate) fn decompress(&self, bytes: &[u8], json_bytes: usize) -> std::io::Result<Vec<u8>> {
        let pooled = self.decompressors.lock().pop();
        let mut decompressor = match pooled {
            Some(decompressor) => decompressor,
            None => Decompressor::with_dictionary(&self.bytes)?,
        };
        let json = decompressor.decompress(bytes, json_bytes);
        self.decompressors.lock().push(decompressor);
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_comes_back_and_is_small() {
        let sample = |n: usize| {
            let hash = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"settings-{n}","labels":{{"app":"shop"}}}},
                "data":{{"token":"{hash:x}","greeting":"welcome to the shop, dear customer"}}}}"#).into_bytes()
        };
        let samples: Vec<_> = (0..SAMPLE_OBJECTS).map(sample).collect();
        let dictionary = Dictionary::learn(&samples).unwrap();
        for n in 0..2_000 {
            let json = sample(n);
            let compressed = dictionary.compress(&json).unwrap();
            assert!(compressed.len() * 4 < json.len(), "{} of {}", compressed.len(), json.len());
            assert_eq!(dictionary.decompress(&compressed, json.len()).unwrap(), json);
        }
    }

    #[test]
    fn nothing_is_learned_from_nothing() {
        assert!(Dictionary::learn(&[]).is_none());
        assert!(Dictionary::learn(&[vec![b'a'; 10]]).is_none());
    }
}
