//! The text form of a session with `kubectl`.
//!
//! ```text
//! # A line that starts with # says something to the reader.
//! # needs: controllers
//!
//! $ kubectl create -f - <<'END'
//! > apiVersion: v1
//! > kind: ConfigMap
//! > metadata: {name: a}
//! > END
//! configmap/a created
//!
//! $ kubectl get configmap a b
//! NAME   DATA   AGE
//! a      0      <age>
//! ! Error from server (NotFound): configmaps "b" not found
//! [1]
//! ```
//!
//! `$` begins a command of bash, `>` continues it. What follows is the expected output; lines with `!` are expected on
//! the error output; `[1]` is the expected exit code, 0 where it is left out. The patterns of the expected lines are
//! those of [`crate::compare`].

/// A session: commands in order, and what is expected of each.
#[derive(Debug, Default)]
pub struct Script {
    /// What a server or client must have for this script to make sense: the words of its `# needs:` lines.
    pub needs: Vec<String>,
    /// The commands in order.
    pub steps: Vec<Step>,
}

/// One command of a [`Script`].
#[derive(Debug, Default, PartialEq)]
pub struct Step {
    /// The line of the file, counted from 1, at which the command starts.
    pub line: usize,
    /// The line after the command, where the expectation starts, counted from 0.
    pub expected_from: usize,
    /// The first line after the expectation, counted from 0.
    pub expected_to: usize,
    /// The text for bash.
    pub command: String,
    /// The expected lines of the output.
    pub stdout: Vec<String>,
    /// The expected lines of the error output.
    pub stderr: Vec<String>,
    /// The expected exit code.
    pub code: i32,
}

impl Script {
    /// Reads a script. There is no wrong one: lines before the first command that say nothing are skipped.
    pub fn parse(text: &str) -> Self {
        let mut script = Self::default();
        let mut in_command = false;
        for (number, line) in text.lines().enumerate() {
            if let Some(command) = line.strip_prefix("$ ") {
                let start = Step { line: number + 1, expected_from: number + 1, ..Step::default() };
                script.steps.push(Step { command: command.to_owned(), expected_to: number + 1, ..start });
                in_command = true;
            } else if let Some(note) = line.strip_prefix('#') {
                if let Some(words) = note.trim_start().strip_prefix("needs:") {
                    script.needs.extend(words.split_whitespace().map(str::to_owned));
                }
                in_command = false;
            } else if let Some(step) = script.steps.last_mut() {
                match line.strip_prefix('>') {
                    Some(more) if in_command => step.continue_command(more, number),
                    _ => {
                        in_command = false;
                        step.expect(line, number);
                    }
                }
            }
        }
        for step in &mut script.steps {
            step.drop_blank_end();
        }
        script
    }
}

impl Step {
    fn continue_command(&mut self, more: &str, number: usize) {
        self.command.push('\n');
        self.command.push_str(more.strip_prefix(' ').unwrap_or(more));
        self.expected_from = number + 1;
        self.expected_to = number + 1;
    }

    fn expect(&mut self, line: &str, number: usize) {
        let code =
            line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).and_then(|code| code.parse().ok());
        if let Some(code) = code {
            self.code = code;
        } else if let Some(error) = line.strip_prefix('!') {
            self.stderr.push(error.strip_prefix(' ').unwrap_or(error).to_owned());
        } else {
            self.stdout.push(line.to_owned());
        }
        if !line.is_empty() {
            self.expected_to = number + 1;
        }
    }

    fn drop_blank_end(&mut self) {
        while self.stdout.last().is_some_and(String::is_empty) {
            self.stdout.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_its_lines_its_errors_and_its_code() {
        let script = Script::parse(
            "# Title\n# needs: controllers\n\n$ cat <<'END'\n> a\n>  b\n> END\na\n b\n\n# note\n$ false\n! no\n[1]\n",
        );
        assert_eq!(script.needs, ["controllers"]);
        assert_eq!(script.steps[0].command, "cat <<'END'\na\n b\nEND");
        assert_eq!(script.steps[0].stdout, ["a", " b"]);
        assert_eq!((script.steps[0].expected_from, script.steps[0].expected_to), (7, 9));
        assert_eq!((script.steps[1].line, script.steps[1].code), (12, 1));
        assert_eq!(script.steps[1].stderr, ["no"]);
    }
}
