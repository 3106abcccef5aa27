use std::time::Duration;

use http::StatusCode;

use super::told::Told;

/// What is to go wrong, as the name of a model says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) delay: Duration,
    pub(super) pace: Duration,
    pub(super) words: Option<u64>,
    pub(super) status: Option<StatusCode>,
    pub(super) error: Option<u64>,
    pub(super) cut: Option<u64>,
    pub(super) tear: Option<u64>,
    pub(super) hang: Option<u64>,
    pub(super) usage: Told,
    pub(super) html: bool,
    pub(super) fail: u64,
}

impl Script {
    /// Reads the name of a model: `echo,delay=100ms,status=503`.
    pub(super) fn read(model: &str) -> Result<Self, String> {
        let mut script = Self::default();
        for setting in model.split(',').skip(1) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            let wrong = || format!("model: {setting:?} is not a setting of the mock");
            let number = || value.parse::<u64>().map_err(|_| wrong());
            let duration = || {
                let nanos =
                    watchkeeper_go::duration::parse(value).ok().and_then(|nanos| u64::try_from(nanos).ok());
                nanos.map(Duration::from_nanos).ok_or_else(wrong)
            };
            match name {
                "delay" => script.delay = duration()?,
                "pace" => script.pace = duration()?,
                "words" => script.words = Some(number()?.min(100_000)),
                "status" => script.status = Some(value.parse().map_err(|_| wrong())?),
                "error" => script.error = Some(number()?),
                "cut" => script.cut = Some(number()?),
                "tear" => script.tear = Some(number()?),
                "hang" => script.hang = Some(number()?),
                "fail" => script.fail = number()?,
                "usage" if value == "none" => script.usage = Told::Nothing,
                "usage" if value == "input" => script.usage = Told::Input,
                "html" => script.html = true,
                _ => return Err(wrong()),
            }
        }
        Ok(script)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_model_is_a_script() {
        let script = Script::read("echo,delay=100ms,status=503,error=3,usage=none").unwrap();
        assert_eq!(
            (script.delay, script.status, script.error),
            (Duration::from_millis(100), Some(StatusCode::SERVICE_UNAVAILABLE), Some(3))
        );
        assert_eq!(script.usage, Told::Nothing);
        assert_eq!(Script::read("echo,usage=input").unwrap().usage, Told::Input);
        assert!(
            Script::read("echo,delay").is_err()
                && Script::read("echo,x=1").is_err()
                && Script::read("echo,usage=some").is_err()
                && Script::read("echo").is_ok()
        );
    }
}
