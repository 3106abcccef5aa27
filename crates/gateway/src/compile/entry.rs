use std::path::PathBuf;
use std::sync::Arc;

use super::{FilePrint, Place};
use crate::object::{Input, Problem};

/// A form of an object, and where it is.
pub(super) struct Form {
    pub(super) place: Place,
    pub(super) input: Input,
}

/// An object in all its sources.
///
/// There are as many of these as objects, nearly all of them in one source and used as they are there: so that what is there is also the good
/// form is a matter of a reference, and lists have no room for more than they hold.
#[derive(Default)]
pub(super) struct Entry {
    /// In the order of their places: the first counts.
    candidates: Vec<Arc<Form>>,
    /// The form that is in the table, and its place.
    pub(super) good: Option<Arc<Form>>,
    /// If there are any.
    notes: Option<Box<Notes>>,
}

/// What is to be known of an object besides its forms. Of most, that is nothing.
#[derive(Default)]
pub(super) struct Notes {
    /// What is wrong with the form that counts.
    pub(super) problems: Vec<Problem>,
    /// What it refers to and what is not there, as far as that is known when it is compiled.
    pub(super) unresolved: Vec<Problem>,
    /// The files that it names, and how they were before they were read: a change while they are read is seen afterwards.
    pub(super) files: Vec<(PathBuf, Option<FilePrint>)>,
}

static NO_NOTES: Notes = Notes { problems: Vec::new(), unresolved: Vec::new(), files: Vec::new() };

impl Entry {
    /// The form that counts.
    pub(super) fn first(&self) -> Option<&Arc<Form>> {
        self.candidates.first()
    }

    /// All forms, the one that counts first.
    pub(super) fn candidates(&self) -> &[Arc<Form>] {
        &self.candidates
    }

    /// The form that a place has.
    pub(super) fn at(&self, place: &Place) -> Option<&Arc<Form>> {
        self.find(place).ok().map(|at| &self.candidates[at])
    }

    pub(super) fn notes(&self) -> &Notes {
        self.notes.as_deref().unwrap_or(&NO_NOTES)
    }

    pub(super) fn note(&mut self, notes: Notes) {
        let is_empty = notes.problems.is_empty() && notes.unresolved.is_empty() && notes.files.is_empty();
        self.notes = (!is_empty).then(|| Box::new(notes));
    }

    /// Takes the form that a place has now, and gives the one that it had.
    pub(super) fn set(&mut self, place: &Place, input: Option<Input>) -> Option<Arc<Form>> {
        match (self.find(place), input) {
            (Ok(at), Some(mut input)) => {
                let known = &mut self.candidates[at];
                input.share(&known.input);
                let form = Arc::new(Form { place: known.place.clone(), input });
                Some(std::mem::replace(known, form))
            }
            (Ok(at), None) => Some(self.candidates.remove(at)),
            (Err(at), Some(input)) => {
                self.candidates.reserve_exact(1);
                self.candidates.insert(at, Arc::new(Form { place: place.clone(), input }));
                None
            }
            (Err(_), None) => None,
        }
    }

    fn find(&self, place: &Place) -> Result<usize, usize> {
        self.candidates.binary_search_by(|form| form.place.cmp(place))
    }
}
