//! Objects as YAML, with what YAML has and JSON has not.

use crate::tree::quoted;
use crate::{Dice, Tree};

/// Writes a tree as YAML: mostly plain, now and then with anchors, tags, merge keys, block scalars, several documents.
pub(crate) fn yaml(tree: &Tree, dice: &mut Dice) -> Vec<u8> {
    let mut out = Vec::new();
    if dice.chance(10) {
        out.extend_from_slice(
            dice.pick(&[
                "---\n", "%YAML 1.2\n---\n", "%YAML 9.9\n---\n", "# x\n", "\u{feff}", "--- !!map\n",
                "%TAG ! tag:x,2000:\n---\n", "---\n---\n", "...\n",
            ])
            .as_bytes(),
        );
    }
    let odd = dice.chance(50);
    write(tree, 0, odd, dice, &mut out);
    if dice.chance(10) {
        out.extend_from_slice(dice.pick(&[
            "\n---\nkind: ConfigMap\n", "\n...\n", "\n...\nx", "\n---\n", "\n\t", "\n? x\n: y\n", "\n<<: {a: b}\n", "\n<<: [{a: b}, {c: d}]\n",
            "\n<<: *a\n", "\nx: &a [*a]\n", "\nx: &a {y: *a}\n", "\nx: *nothing\n", "\n\"", "\n- x\n", "\n: x\n", "\nkind: ConfigMap\n",
            "\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n",
        ]).as_bytes());
    }
    out
}

fn write(tree: &Tree, indent: usize, odd: bool, dice: &mut Dice, out: &mut Vec<u8>) {
    let special = odd && dice.chance(4);
    if special {
        let prefix = dice.pick(&[
            "&a ", "!!str ", "!!int ", "!!null ", "!!binary ", "!!timestamp ", "!!float ", "!!map ",
            "!!seq ", "! ", "!x ", "!<tag:x> ", "&a !!str ", "*a ",
        ]);
        out.extend_from_slice(prefix.as_bytes());
    }
    match tree {
        Tree::Map(fields) if !fields.is_empty() && !special && dice.chance(80) => {
            for (place, (name, value)) in fields.iter().enumerate() {
                if place > 0 || indent > 0 {
                    line(indent, out);
                }
                out.extend_from_slice(key(name, odd, dice).as_bytes());
                out.extend_from_slice(b": ");
                write(value, indent + 2, odd, dice, out);
            }
        }
        Tree::List(items) if !items.is_empty() && !special && indent > 0 && dice.chance(80) => {
            for item in items {
                line(indent, out);
                out.extend_from_slice(b"- ");
                // Flow style, so that the place of the dash does not matter.
                out.extend_from_slice(&item.json());
            }
        }
        Tree::Text(text) if odd && dice.chance(40) => {
            out.extend_from_slice(scalar(text, indent, dice).as_bytes());
        }
        Tree::Number(_) | Tree::Bool(_) | Tree::Null if odd && dice.chance(15) => {
            let scalar = dice.pick(&[
                "~", "", "yes", "off", "NULL", "0o17", "017", "0x1F", "1_000", "0b11", ".inf", "-.INF",
                ".nan", "1e3", "190:20:30", "2001-01-01", "=", "+1", "- 1", "1.", "0.1e1", "True", "y", "00",
                "-0", "9223372036854775808", "1e400",
            ]);
            out.extend_from_slice(scalar.as_bytes());
        }
        tree => out.extend_from_slice(&tree.json()),
    }
}

fn line(indent: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', indent));
}

fn key(name: &str, odd: bool, dice: &mut Dice) -> String {
    if odd && dice.chance(2) {
        return dice
            .pick(&[
                "1", "true", "null", "~", "1.5", "[a, b]", "{a: b}", "? x", "<<", "\"\"", "''", "&k x",
                "!!int 1", "2001-01-01", "0x10",
            ])
            .to_owned();
    }
    let plain = !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric());
    if plain { name.to_owned() } else { quoted(name) }
}

/// A text in one of the forms that YAML has for it.
fn scalar(text: &str, indent: usize, dice: &mut Dice) -> String {
    let pad = " ".repeat(indent.max(1));
    match dice.below(6) {
        0 => format!("|\n{pad}{}", text.replace('\n', &format!("\n{pad}"))),
        1 => format!(">-\n{pad}{text}"),
        2 => format!("|{}\n{pad}{text}", dice.pick(&["+", "-", "9", "2-", "0", "+9"])),
        3 => format!("'{}'", text.replace('\'', "''")),
        4 => text.to_owned(),
        _ => format!(
            "\"{}\"",
            dice.pick(&[
                "\\x41", "\\u0000", "\\ud800", "\\U00110000", "\\N", "\\_", "\\L", "\\q", "a\\\n b", "\\/"
            ])
        ),
    }
}
