//! Stands in for `dictionary` without the feature `compressed`: nothing is ever learned.

/// There is none.
pub(crate) enum Dictionary {}

/// Objects and bytes to learn from.
pub(crate) const SAMPLE_OBJECTS: usize = 1;
pub(crate) const SAMPLE_BYTES: usize = 0;

impl Dictionary {
    pub(crate) fn learn(_samples: &[Vec<u8>]) -> Option<Self> {
        None
    }

    pub(crate) fn compress(&self, _json: &[u8]) -> Option<Box<[u8]>> {
        match *self {}
    }

    pub(crate) fn decompress(&self, _bytes: &[u8], _json_bytes: usize) -> std::io::Result<Vec<u8>> {
        match *self {}
    }
}
