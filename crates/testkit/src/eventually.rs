use std::fmt::Display;
use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep, timeout_at};

/// How long something may take, unless told otherwise.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long something has to stay as it is, unless told otherwise.
const CALM: Duration = Duration::from_secs(1);
/// How often to look.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The result of a check: `bool`, `Option` or `Result`.
pub trait Verdict {
    /// What is gained when it holds.
    type Gain;
    /// That, or why it does not hold.
    fn into_result(self) -> Result<Self::Gain, String>;
}

impl Verdict for bool {
    type Gain = ();
    fn into_result(self) -> Result<(), String> {
        self.then_some(()).ok_or_else(|| "it is not so".into())
    }
}

impl<T> Verdict for Option<T> {
    type Gain = T;
    fn into_result(self) -> Result<T, String> {
        self.ok_or_else(|| "there is none".into())
    }
}

impl<T, E: Display> Verdict for Result<T, E> {
    type Gain = T;
    fn into_result(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

/// Repeats a check until it succeeds, and returns its value; panics with the last failure if that takes
/// longer than 20 s of tokio's time ([`within`](Eventually::within) says otherwise).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use watchkeeper_testkit::eventually;
/// let mut tries = 0;
/// let three = eventually(|| {
///     tries += 1;
///     let tries = tries;
///     async move { if tries == 3 { Ok(tries) } else { Err(format!("only {tries}")) } }
/// })
/// .await;
/// assert_eq!(three, 3);
/// # }
/// ```
#[track_caller]
pub fn eventually<'a, F, Answer>(check: F) -> Eventually<'a, <Answer::Output as Verdict>::Gain>
where
    F: FnMut() -> Answer + Send + 'a,
    Answer: Future<Output: Verdict> + Send + 'a,
{
    Eventually { check: boxed(check), timeout: TIMEOUT, at: Location::caller() }
}

/// Repeats a check for a second of tokio's time ([`throughout`](Consistently::throughout) says otherwise) and panics
/// as soon as the answer is bad.
#[track_caller]
pub fn consistently<'a, F, Answer>(check: F) -> Consistently<'a, <Answer::Output as Verdict>::Gain>
where
    F: FnMut() -> Answer + Send + 'a,
    Answer: Future<Output: Verdict> + Send + 'a,
{
    Consistently { check: boxed(check), time: CALM, at: Location::caller() }
}

type Check<'a, T> = Box<dyn FnMut() -> BoxFuture<'a, Result<T, String>> + Send + 'a>;

fn boxed<'a, F, Answer>(mut check: F) -> Check<'a, <Answer::Output as Verdict>::Gain>
where
    F: FnMut() -> Answer + Send + 'a,
    Answer: Future<Output: Verdict> + Send + 'a,
{
    Box::new(move || {
        let answer = check();
        Box::pin(async move { answer.await.into_result() })
    })
}

/// The future of [`eventually`].
#[must_use = "nothing is asked until this is awaited"]
pub struct Eventually<'a, T> {
    check: Check<'a, T>,
    timeout: Duration,
    at: &'static Location<'static>,
}

/// The future of [`consistently`].
#[must_use = "nothing is asked until this is awaited"]
pub struct Consistently<'a, T> {
    check: Check<'a, T>,
    time: Duration,
    at: &'static Location<'static>,
}

impl<T> Eventually<'_, T> {
    /// Sets the timeout.
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl<T> Consistently<'_, T> {
    /// Sets the time for which the check is repeated.
    pub fn throughout(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }
}

impl<'a, T: Send + 'a> IntoFuture for Eventually<'a, T> {
    type Output = T;
    type IntoFuture = BoxFuture<'a, T>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            let deadline = Instant::now() + self.timeout;
            let mut last = "the check did not come to an end".to_owned();
            while let Ok(verdict) = timeout_at(deadline, (self.check)()).await {
                match verdict {
                    Ok(gain) => return gain,
                    Err(failure) => last = failure,
                }
                if Instant::now() >= deadline {
                    break;
                }
                sleep(POLL_INTERVAL).await;
            }
            panic!("{}: not within {:?}: {last}", self.at, self.timeout)
        })
    }
}

impl<'a, T: Send + 'a> IntoFuture for Consistently<'a, T> {
    type Output = ();
    type IntoFuture = BoxFuture<'a, ()>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            let start = Instant::now();
            loop {
                if let Err(failure) = (self.check)().await {
                    panic!("{}: no longer so after {:?}: {failure}", self.at, start.elapsed());
                }
                if start.elapsed() >= self.time {
                    return;
                }
                sleep(POLL_INTERVAL).await;
            }
        })
    }
}
