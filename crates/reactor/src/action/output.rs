//! The output of a command, with a limit.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// So much of a line is shown.
const LINE: usize = 1000;
/// So much of one run is shown.
const RUN: usize = 64 * 1024;

/// Logs what a command prints, line by line, until it closes its end. Reads everything, so that the command never waits, and keeps one
/// line of it.
pub(super) async fn log(mut from: impl AsyncRead + Unpin, prefix: String) {
    let mut lines = Lines { prefix, line: Vec::new(), shown: 0, unshown: 0 };
    let mut chunk = vec![0; 16 * 1024];
    loop {
        match from.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(count) => lines.take(&chunk[..count]),
        }
    }
    // `lines` says the rest when it is dropped, also if nobody waits for the end.
}

struct Lines {
    prefix: String,
    line: Vec<u8>,
    shown: usize,
    unshown: usize,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let room =
                LINE.saturating_sub(self.line.len()).min(RUN.saturating_sub(self.shown + self.line.len()));
            let kept = text.len().min(room);
            self.line.extend_from_slice(&text[..kept]);
            self.unshown += text.len() - kept;
            if text.len() < part.len() {
                self.show();
            }
        }
    }

    fn show(&mut self) {
        if !self.line.is_empty() {
            self.shown += self.line.len();
            let text: String = String::from_utf8_lossy(&self.line)
                .chars()
                .map(|char| if char.is_control() { ' ' } else { char })
                .collect();
            tracing::info!("{} | {}", self.prefix, text.trim_end());
            self.line.clear();
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.show();
        if self.unshown > 0 {
            tracing::info!("{} | ... and {} bytes more", self.prefix, self.unshown);
        }
    }
}
