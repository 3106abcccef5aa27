//! What the gateway is measured with.
//!
//! ```text
//! watchkeeper-bench-gateway proxy LISTEN BACKEND           the least that a proxy on hyper can be
//! watchkeeper-bench-gateway load ADDRESS PATH RATE SECONDS requests at a fixed rate, up to 64 at a time whether answers come or not;
//!                                                          RATE 0: as many as there are answers to
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

mod load;
mod proxy;

use std::process::ExitCode;

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let done = match words[..] {
        ["proxy", listen, backend] => runtime.block_on(proxy::serve(listen, backend)),
        ["load", address, path, rate, seconds] => match (rate.parse(), seconds.parse()) {
            (Ok(rate), Ok(seconds)) => runtime.block_on(load::load(address, path, rate, seconds)),
            _ => Err("RATE and SECONDS are numbers".into()),
        },
        _ => Err("proxy LISTEN BACKEND, or load ADDRESS PATH RATE SECONDS (RATE 0: as many as there are answers to)".into()),
    };
    done.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
}

fn failed(error: &Failed) -> ExitCode {
    eprintln!("watchkeeper-bench-gateway: {error}");
    ExitCode::FAILURE
}
