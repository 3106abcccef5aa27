//! The parts of a template that a project has or has not.

use crate::error::Error;

/// What a line of a template is.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Begin {
        part: &'a str,
        negated: bool,
    },
    End {
        part: &'a str,
        negated: bool,
    },
    /// Code behind `//=`, with the indentation before it.
    Hidden {
        indent: &'a str,
        code: &'a str,
    },
    Text,
}

/// Leaves out the marks of a template, and what is not asked for.
pub(crate) fn keep(text: &str, has: impl Fn(&str) -> Option<bool>) -> Result<String, Error> {
    let mut open: Vec<(&str, bool, bool)> = Vec::new();
    let mut kept = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        let broken = |what: &str| Error::Template(format!("line {}: {what}: {line}", number + 1));
        match Line::read(line) {
            Line::Begin { part, negated } => {
                let is_kept = has(part).ok_or_else(|| broken("unknown part"))? != negated;
                open.push((part, negated, is_kept));
            }
            Line::End { part, negated } => match open.pop() {
                Some((begun, was, _)) if (begun, was) == (part, negated) => {}
                _ => return Err(broken("ends what did not begin")),
            },
            _ if !open.iter().all(|(_, _, is_kept)| *is_kept) => {}
            Line::Hidden { indent, code } => {
                kept.push_str(indent);
                kept.push_str(code);
                kept.push('\n');
            }
            Line::Text => {
                kept.push_str(line);
                kept.push('\n');
            }
        }
    }
    match open.pop() {
        Some((part, ..)) => Err(Error::Template(format!("<{part}> does not end"))),
        None => Ok(kept),
    }
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Self {
        let trimmed = line.trim_start();
        let indent = &line[..line.len() - trimmed.len()];
        let Some((leader, rest)) =
            ["//", "#", "<!--"].iter().find_map(|leader| Some((*leader, trimmed.strip_prefix(leader)?)))
        else {
            return Self::Text;
        };
        if let Some(code) = rest.strip_prefix("= ") {
            return Self::Hidden { indent, code };
        }
        let rest = if leader == "<!--" { rest.trim_end().strip_suffix("-->").unwrap_or(rest) } else { rest };
        let Some(mark) = rest.trim().strip_prefix('<').and_then(|mark| mark.strip_suffix('>')) else {
            return Self::Text;
        };
        let (is_end, mark) = mark.strip_prefix('/').map_or((false, mark), |mark| (true, mark));
        let (negated, part) = mark.strip_prefix('!').map_or((false, mark), |part| (true, part));
        if part.is_empty() || !part.chars().all(|char| char.is_ascii_lowercase()) {
            return Self::Text;
        }
        if is_end { Self::End { part, negated } } else { Self::Begin { part, negated } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a\n  // <x>\n  b\n  // <!y>\n  c\n  // </!y>\n  // </x>\n# <y>\n#= d\n# </y>\n<!-- <x> -->\ne\n<!-- </x> -->\n// f\n";

    fn kept(x: bool, y: bool) -> String {
        let has = |part: &str| match part {
            "x" => Some(x),
            "y" => Some(y),
            _ => None,
        };
        keep(TEXT, has).unwrap().replace(['\n', ' '], "")
    }

    #[test]
    fn parts_are_kept_or_left_out() {
        assert_eq!(kept(true, true), "abde//f");
        assert_eq!(kept(true, false), "abce//f");
        assert_eq!(kept(false, true), "ad//f");
        assert_eq!(kept(false, false), "a//f");
    }

    #[test]
    fn a_mark_that_does_not_end_is_found() {
        let has = |_: &str| Some(true);
        assert!(keep("// <x>\n", has).is_err());
        assert!(keep("// </x>\n", has).is_err());
        assert!(keep("// <x>\n// </!x>\n", has).is_err());
        assert!(keep("// <x>\n// </x>\n", |_| None).is_err());
    }
}
