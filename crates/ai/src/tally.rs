use crate::Usage;

/// What a provider has said of usage, while the model wrote.
///
/// Usage is known if the prompt was counted and, where the model has written something, what it wrote was counted after that. What is said at the beginning
/// of a stream, or of the prompt only, is too little to settle with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    told: Option<Usage>,
    has_content: bool,
    /// Whether what the model wrote was counted since it wrote last.
    is_output_told: bool,
}

impl Tally {
    /// Notes that the model has written something.
    pub fn wrote(&mut self) {
        self.has_content = true;
        self.is_output_told = false;
    }

    /// Notes what the provider says.
    pub fn told(&mut self, usage: Usage) {
        self.is_output_told |= usage.output > 0;
        self.told = Some(self.told.map_or(usage, |known| known.merged(usage)));
    }

    /// Whether something that is written now would make it incomplete.
    pub(crate) fn is_output_told(&self) -> bool {
        self.is_output_told
    }

    /// What was used; `None` if the provider did not say all of it.
    pub fn known(&self) -> Option<Usage> {
        self.told.filter(|told| told.input > 0 && (self.is_output_told || !self.has_content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_known_when_the_output_was_counted_after_the_last_of_it() {
        let start = Usage { input: 10, output: 1, ..Usage::default() };
        let end = Usage { output: 7, ..Usage::default() };
        let mut tally = Tally::default();
        assert_eq!(tally.known(), None);
        tally.told(start);
        assert_eq!(tally.known(), Some(start), "a model may write nothing");
        tally.wrote();
        assert_eq!(tally.known(), None, "what was told is too old");
        tally.told(Usage { input: 10, ..Usage::default() });
        assert_eq!(tally.known(), None, "the output is not told");
        tally.told(end);
        assert_eq!(tally.known(), Some(Usage { output: 7, ..start }));
        tally.wrote();
        assert_eq!(tally.known(), None, "the model went on");
        let mut tally = Tally::default();
        tally.wrote();
        tally.told(end);
        assert_eq!(tally.known(), None, "the prompt is not told");
    }
}
