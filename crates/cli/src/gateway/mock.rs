use std::io::{self, Write as _};
use std::net::SocketAddr;

use clap::Args;
use watchkeeper_gateway::mock::Mock;

use crate::failure::Failure;
use crate::stopping::Signals;
use crate::{host, logging};

/// Serve as a provider of models that has none: it says what it is told
///
/// It speaks the dialects of OpenAI, Anthropic and Gemini. The name of a model may say what is to go wrong.
#[derive(Args)]
#[command(after_help = "\
Settings, after the name of a model and a comma, such as echo,delay=100ms,status=503:
  delay=100ms  waits before it answers          pace=10ms   waits before every piece of a stream
  words=50     says so many words               usage=none  does not say what was used
  status=503   refuses with this code           fail=2      refuses the first so many requests
  error=3      an error after so many pieces    cut=3       breaks off after so many pieces
  html=yes     answers with a page              tear=3      breaks off within the event after so many pieces
  hang=3       says no more after so many pieces  usage=input  says of usage only what the prompt was

Example:
  watchkeeper gateway mock --listen 127.0.0.1:9000
  curl http://127.0.0.1:9000/v1/chat/completions -d '{\"model\": \"echo\", \"messages\": [{\"role\": \"user\", \"content\": \"hello\"}]}'")]
pub(super) struct MockProvider {
    /// Where it listens; port 0 takes any that is free. The URL is printed on stdout
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// The key that requests have to have
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl MockProvider {
    pub(super) fn run(self) -> Result<(), Failure> {
        logging::begin_plain("info")?;
        let runtime = host::runtime()?;
        let done = runtime.block_on(async {
            let mut signals = Signals::listen()?;
            let mock = Mock::start(self.listen, self.key).map_err(Failure::running)?;
            let mut output = io::stdout();
            writeln!(output, "http://{}", mock.address())
                .and_then(|()| output.flush())
                .map_err(Failure::running)?;
            signals.next().await;
            mock.stop().await;
            Ok(())
        });
        runtime.shutdown_background();
        done
    }
}
