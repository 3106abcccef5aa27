use crate::{FieldError, Path};
use watchkeeper_go as go;

/// The maximum length of the name of a manager, in bytes.
pub const MAX_NAME: usize = 128;

/// What is wrong with the name of a manager: it must not be longer than [`MAX_NAME`] and have only printable characters.
/// An empty name is not wrong here; that apply needs one is another rule.
pub fn check_name(name: &str, at: &Path) -> Vec<FieldError> {
    let mut found = Vec::new();
    if name.len() > MAX_NAME {
        found.push(FieldError::too_long(at, MAX_NAME as i64));
    }
    for (position, char) in name.char_indices() {
        if !go::quote::is_print(char) {
            let code = u32::from(char);
            let message = format!("invalid character U+{code:04X} (at position {position})");
            found.push(FieldError::invalid(at, name, message));
        }
    }
    found
}
