//! Seeded randomness.

/// What decides. The same seed decides the same.
#[derive(Debug)]
pub struct Dice(fastrand::Rng);

impl Dice {
    /// Dice that fall as this seed says.
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Whether something happens that happens this often in a hundred times.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.u32(0..100) < percent
    }

    /// A number below a limit; 0 if the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { self.0.usize(0..limit) }
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.0.u8(..)
    }

    /// One of these. Panics if there is none.
    pub fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// One of these by its place. Panics if there is none.
    pub fn item<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// How many changes something gets: mostly one to three, now and then many.
    pub fn few(&mut self) -> usize {
        match self.below(20) {
            0 => 4 + self.below(16),
            1..=6 => 2 + self.below(2),
            _ => 1,
        }
    }
}
