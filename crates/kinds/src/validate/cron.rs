//! Schedules: five fields, or a word for one.

const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Whether a schedule can be read; the error is the one of the library that Kubernetes uses.
pub(crate) fn check(schedule: &str) -> Result<(), String> {
    if schedule.starts_with('@') {
        let known = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
        let is_known = known.contains(&schedule) || schedule.starts_with("@every ");
        return if is_known { Ok(()) } else { Err(format!("unrecognized descriptor: {schedule}")) };
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != 5 {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (field, (least, most, names)) in fields.iter().zip(FIELDS) {
        for expression in field.split(',') {
            range(expression, least, most, names)?;
        }
    }
    Ok(())
}

fn range(expression: &str, least: u32, most: u32, names: &[&str]) -> Result<(), String> {
    let (bounds, step) = match expression.split_once('/') {
        None => (expression, None),
        Some((_, step)) if step.contains('/') => return Err(format!("too many slashes: {expression}")),
        Some((bounds, step)) => (bounds, Some(step)),
    };
    let (low, high) = match bounds.split_once('-') {
        _ if bounds == "*" || bounds == "?" => (least, most),
        Some((_, high)) if high.contains('-') => return Err(format!("too many hyphens: {expression}")),
        Some((low, high)) => (number(low, least, names)?, number(high, least, names)?),
        None => {
            let only = number(bounds, least, names)?;
            (only, if step.is_some() { most } else { only })
        }
    };
    let step = step.map_or(Ok(1), |step| number(step, 0, &[]))?;
    if low < least {
        return Err(format!("beginning of range ({low}) below minimum ({least}): {expression}"));
    }
    if high > most {
        return Err(format!("end of range ({high}) above maximum ({most}): {expression}"));
    }
    if low > high {
        return Err(format!("beginning of range ({low}) beyond end of range ({high}): {expression}"));
    }
    if step == 0 { Err(format!("step of range should be a positive number: {expression}")) } else { Ok(()) }
}

fn number(text: &str, first: u32, names: &[&str]) -> Result<u32, String> {
    if let Some(place) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return Ok(first + place as u32);
    }
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))
        }
    }
}
