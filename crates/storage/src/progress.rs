/// Told how many entries have been read or written, now and then.
pub type Progress<'a> = &'a (dyn Fn(usize) + Sync);
