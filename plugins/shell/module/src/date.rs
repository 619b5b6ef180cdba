//! `date -d` as GNU date reads it: bashkit's own reads a date and one offset. Here the text
//! becomes seconds since 1970, and bashkit's date prints them.

use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};

pub struct Date;

#[async_trait]
impl Builtin for Date {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let utc = ctx.args.iter().any(|a| a == "--utc" || a == "--universal" || a.starts_with('-') && !a.starts_with("--") && a.contains('u') && !a.contains('d'));
        let zone = if utc { None } else { ctx.env.get("TZ").cloned() };
        let mut args = Vec::with_capacity(ctx.args.len());
        let mut rest = ctx.args.iter();
        while let Some(arg) = rest.next() {
            let text = match arg.as_str() {
                "-d" | "--date" => rest.next().cloned(),
                "-ud" => {
                    args.push("-u".into());
                    rest.next().cloned()
                }
                a => a.strip_prefix("--date=").or_else(|| a.strip_prefix("-d").filter(|_| !a.starts_with("--"))).map(String::from),
            };
            match text {
                None => args.push(arg.clone()),
                Some(text) => match when(&text, zone.as_ref()) {
                    Some(time) => args.push(format!("--date=@{time}")),
                    None => return Ok(ExecResult::err(format!("date: invalid date '{text}'\n"), 1)),
                },
            }
        }
        let mut ctx = ctx;
        ctx.args = &args;
        bashkit::Date::new().execute(ctx).await
    }
}

const WEEKDAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const MONTHS: [&str; 12] =
    ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];

/// The index of a name that is written whole or by its first three letters.
fn named(list: &[&str], word: &str) -> Option<i64> {
    let word = word.trim_end_matches([',', '.']);
    list.iter().position(|n| *n == word || word.len() >= 3 && n.len() > word.len() && n.starts_with(word) && word.len() <= 4).map(|i| i as i64)
}

/// Offsets in years, months, days and seconds.
type Offset = [i64; 4];

fn unit(word: &str) -> Option<Offset> {
    Some(match word.strip_suffix('s').unwrap_or(word) {
        "sec" | "second" => [0, 0, 0, 1],
        "min" | "minute" => [0, 0, 0, 60],
        "hour" => [0, 0, 0, 3600],
        "day" => [0, 0, 1, 0],
        "week" => [0, 0, 7, 0],
        "fortnight" => [0, 0, 14, 0],
        "month" => [0, 1, 0, 0],
        "year" => [1, 0, 0, 0],
        _ => return None,
    })
}

/// The seconds since 1970. None: it is no date.
fn when(text: &str, zone: Option<&String>) -> Option<String> {
    let clock = bashkit::Date::new();
    let lower = text.trim().to_lowercase();
    if let Some(seconds) = lower.strip_prefix('@') {
        if seconds.parse::<f64>().is_ok() {
            return Some(seconds.into());
        }
    }
    let mut words = vec![];
    for word in lower.split_whitespace() {
        // "+2days", "-1month" and "+ 2 days" are one thing; dates and zones stay whole.
        let at = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        if at > 0 && unit(&word[at..]).is_some() && word[..at].parse::<i64>().is_ok() {
            words.extend([word[..at].to_string(), word[at..].to_string()]);
        } else if let Some(sign) = words.last_mut().filter(|w| *w == "+" || *w == "-") {
            sign.push_str(word);
        } else {
            words.push(word.to_string());
        }
    }
    let (mut offset, mut last): (Offset, Offset) = ([0; 4], [0; 4]);
    let (mut date, mut time): (Option<[i64; 3]>, Option<[i64; 3]>) = (None, None);
    let (mut weekday, mut base, mut zero, mut shift) = (None, vec![], false, None);
    let mut add = |o: Offset, n: i64, last: &mut Offset| {
        for i in 0..4 {
            last[i] = o[i].saturating_mul(n);
            offset[i] = offset[i].saturating_add(last[i]);
        }
    };
    let mut i = 0;
    while i < words.len() {
        let word = words[i].as_str();
        let next = words.get(i + 1).map_or("", String::as_str);
        i += 1;
        let step = match word {
            "next" => 1,
            "last" => -1,
            _ => 0,
        };
        match word {
            "now" | "of" | "at" | "on" | "and" => {}
            "today" => {}
            "midnight" => time = Some([0; 3]),
            "noon" => time = Some([12, 0, 0]),
            "yesterday" => add([0, 0, 1, 0], -1, &mut last),
            "tomorrow" => add([0, 0, 1, 0], 1, &mut last),
            "ago" => {
                let undone = last;
                add(undone, -2, &mut last);
            }
            "next" | "last" | "this" if unit(next).is_some() => {
                add(unit(next)?, step, &mut last);
                i += 1;
            }
            "next" | "last" | "this" if named(&WEEKDAYS, next).is_some() => {
                weekday = Some((named(&WEEKDAYS, next)?, step));
                i += 1;
            }
            _ if word.parse::<i64>().is_ok() && unit(next).is_some() => {
                add(unit(next)?, word.parse().ok()?, &mut last);
                i += 1;
            }
            _ if unit(word).is_some() => add(unit(word)?, 1, &mut last),
            // "15 march 2024", "march 15, 2024", "15 mar"
            _ if named(&MONTHS, word).is_some() || named(&MONTHS, next).is_some() && day(word).is_some() => {
                let first = named(&MONTHS, word);
                let (month, of) = match first {
                    Some(m) => (m, day(next)?),
                    None => (named(&MONTHS, next)?, day(word)?),
                };
                i += 1;
                let year = words.get(i).and_then(|y| y.parse().ok()).filter(|y| *y > 31);
                i += usize::from(year.is_some());
                date = Some([year.unwrap_or(i64::MIN), month + 1, of]);
                zero = true;
            }
            _ if named(&WEEKDAYS, word).is_some() => weekday = weekday.or(Some((named(&WEEKDAYS, word)?, 0))),
            _ if clock_time(word, next).is_some() => {
                let (t, used) = clock_time(word, next)?;
                time = Some(t);
                i += used;
                // A signed number after a time is its zone, whatever follows.
                if let Some(after) = words.get(i).filter(|w| w.starts_with(['+', '-'])) {
                    shift = Some(zone_offset(after)?);
                    i += 1;
                }
            }
            // "02/28/2024", "2024/02/28", "20240228"
            _ if numbers(word).is_some() => {
                date = numbers(word);
                zero = true;
            }
            _ => base.push(word.to_uppercase()),
        }
    }
    // What is left is a date that bashkit knows, with its zone: "2024-02-28T10:00:00Z".
    let now = base.is_empty();
    let mut seconds = match base.as_slice() {
        [] => clock.now_epoch().0,
        _ => {
            let mut text = base.join(" ");
            if let Some(t) = time.take() {
                base[0] = format!("{} {:02}:{:02}:{:02}", base[0], t[0], t[1], t[2]);
                text = base.join(" ");
            }
            clock.parse_date(zone, &text).ok()?.timestamp()
        }
    };
    let local = |s: i64| -> Option<Vec<i64>> {
        let text = clock.strftime(zone, Some(s), "%Y %m %d %H %M %S %w").ok()?;
        text.split(' ').map(|n| n.parse().ok()).collect()
    };
    let fixed = offset[..3] != [0; 3] || date.is_some() || time.is_some() || weekday.is_some();
    if fixed {
        let mut t = local(seconds)?;
        if let Some(d) = date {
            t[0] = if d[0] == i64::MIN { t[0] } else { d[0] };
            (t[1], t[2]) = (d[1], d[2]);
        }
        if now && time.is_none() && (zero || weekday.is_some()) {
            time = Some([0; 3]);
        }
        if let Some(c) = time {
            (t[3], t[4], t[5]) = (c[0], c[1], c[2]);
        }
        if let Some((day, step)) = weekday {
            let ahead = (day - local(clock.mktime(zone, [t[0], t[1], t[2], 12, 0, 0])?)?[6]).rem_euclid(7);
            t[2] += match step {
                1 if ahead == 0 => 7,
                -1 => ahead - 7,
                _ => ahead,
            };
        }
        seconds = clock.mktime(if shift.is_some() { None } else { zone }, [t[0] + offset[0], t[1] + offset[1], t[2] + offset[2], t[3], t[4], t[5]])?;
    }
    seconds = seconds.checked_add(offset[3])?.checked_sub(shift.unwrap_or(0))?;
    Some(seconds.to_string())
}

/// Seconds east of Greenwich: "+2", "-0530", "+05:30".
fn zone_offset(word: &str) -> Option<i64> {
    let digits = word[1..].replace(':', "");
    let n: i64 = digits.parse().ok()?;
    let seconds = match digits.len() {
        1 | 2 if n <= 24 => n * 3600,
        4 => n / 100 * 3600 + n % 100 * 60,
        _ => return None,
    };
    Some(if word.starts_with('-') { -seconds } else { seconds })
}

fn day(word: &str) -> Option<i64> {
    word.trim_end_matches(',').parse().ok().filter(|d| (1..=31).contains(d))
}

/// A time of the day, and how many words more it takes: "10:30", "10:30:15", "5pm", "5 pm".
fn clock_time(word: &str, next: &str) -> Option<([i64; 3], usize)> {
    let half = |w: &str| match w {
        "am" | "a.m." => Some(0),
        "pm" | "p.m." => Some(12),
        _ => None,
    };
    let (digits, shift, used) = match (word.strip_suffix("am"), word.strip_suffix("pm"), half(next)) {
        (Some(d), _, _) => (d, Some(0), 0),
        (_, Some(d), _) => (d, Some(12), 0),
        (_, _, Some(h)) => (word, Some(h), 1),
        _ => (word, None, 0),
    };
    let parts: Vec<i64> = digits.split(':').map(|p| p.parse().ok().filter(|_| (1..=2).contains(&p.len()))).collect::<Option<_>>()?;
    let (minute, second) = (*parts.get(1).unwrap_or(&0), *parts.get(2).unwrap_or(&0));
    let hour = match shift {
        Some(s) if (1..=12).contains(&parts[0]) => parts[0] % 12 + s,
        None if parts.len() > 1 => parts[0],
        _ => return None,
    };
    (parts.len() <= 3 && hour < 24 && minute < 60 && second <= 60).then_some(([hour, minute, second], used))
}

fn numbers(word: &str) -> Option<[i64; 3]> {
    let parts: Vec<i64> = word.split('/').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    let date = match (parts.as_slice(), word.len()) {
        ([y, m, d], _) if *y > 31 => [*y, *m, *d],
        ([m, d, y], _) => [if *y < 69 { y + 2000 } else if *y < 100 { y + 1900 } else { *y }, *m, *d],
        ([m, d], _) => [i64::MIN, *m, *d],
        ([n], 8) => [n / 10000, n / 100 % 100, n % 100],
        _ => return None,
    };
    ((1..=12).contains(&date[1]) && (1..=31).contains(&date[2])).then_some(date)
}
