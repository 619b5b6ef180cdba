//! cut by bytes, as GNU's is, on input as it comes.

use crate::filters::{GONE, failed, help, options, source, write};
use bashkit::{Command, CommandContext, CommandStatus, Result, async_trait};

pub struct Cut;

/// The ranges of a list such as 1,3-5,7-: from and to, counted from 1, in order and apart.
fn ranges(list: &str, fields: bool) -> std::result::Result<Vec<(usize, usize)>, String> {
    let what = if fields { "field" } else { "byte/character position" };
    let number = |s: &str| s.parse::<usize>().map_err(|_| if fields { format!("invalid field value '{s}'") } else { format!("invalid {what} '{s}'") });
    let mut all = vec![];
    for part in list.split([',', ' ', '\t']) {
        let (from, to) = match part.split_once('-') {
            Some(("", "")) => return Err("invalid range with no endpoint: -".into()),
            Some((from, to)) => (if from.is_empty() { 1 } else { number(from)? }, if to.is_empty() { usize::MAX } else { number(to)? }),
            None => (number(part)?, number(part)?),
        };
        if from == 0 {
            return Err(if fields { "fields are numbered from 1".into() } else { "byte/character positions are numbered from 1".into() });
        }
        if to < from {
            return Err("invalid decreasing range".into());
        }
        all.push((from, to));
    }
    all.sort_unstable();
    let mut apart: Vec<(usize, usize)> = vec![];
    for (from, to) in all {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    Ok(apart)
}

fn others(list: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let (mut out, mut next) = (vec![], 1);
    for (from, to) in list {
        if *from > next {
            out.push((next, from - 1));
        }
        next = to.saturating_add(1);
    }
    if next < usize::MAX {
        out.push((next, usize::MAX));
    }
    out
}

struct Cutter {
    ranges: Vec<(usize, usize)>,
    fields: bool,
    delimiter: u8,
    between: Option<Vec<u8>>,
    delimited: bool,
    end: u8,
}

impl Cutter {
    fn line(&self, line: &[u8], out: &mut Vec<u8>) {
        if !self.fields {
            let mut first = true;
            for (from, to) in self.ranges.iter().filter(|(from, _)| *from <= line.len()) {
                if let Some(between) = self.between.as_ref().filter(|_| !first) {
                    out.extend_from_slice(between);
                }
                first = false;
                out.extend_from_slice(&line[from - 1..(*to).min(line.len())]);
            }
            return out.push(self.end);
        }
        if !line.contains(&self.delimiter) {
            if !self.delimited {
                out.extend_from_slice(line);
                out.push(self.end);
            }
            return;
        }
        let (mut first, mut at) = (true, 0);
        for (i, field) in line.split(|b| *b == self.delimiter).enumerate() {
            while at < self.ranges.len() && self.ranges[at].1 < i + 1 {
                at += 1;
            }
            if at == self.ranges.len() {
                break;
            }
            if self.ranges[at].0 > i + 1 {
                continue;
            }
            if !first {
                match &self.between {
                    Some(between) => out.extend_from_slice(between),
                    None => out.push(self.delimiter),
                }
            }
            first = false;
            out.extend_from_slice(field);
        }
        out.push(self.end);
    }
}

#[async_trait]
impl Command for Cut {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        if help(&ctx, "cut OPTION... [FILE]...\nPrint selected parts of lines from each FILE to standard output.").await? {
            return Ok(CommandStatus::success());
        }
        let long = [
            ("bytes", 'b'),
            ("characters", 'c'),
            ("complement", 'x'),
            ("delimiter", 'd'),
            ("fields", 'f'),
            ("only-delimited", 's'),
            ("output-delimiter", 'o'),
            ("zero-terminated", 'z'),
        ];
        let o = match options(ctx.args, "b:c:d:f:nszo:x", &long) {
            Ok(o) => o,
            Err(message) => return failed(&ctx, &message).await,
        };
        let mut c = Cutter { ranges: vec![], fields: false, delimiter: b'\t', between: None, delimited: false, end: b'\n' };
        let (mut list, mut complement, mut given) = (None, false, false);
        let mut wrong = None;
        for (k, value) in &o.list {
            match k {
                'b' | 'c' | 'f' => {
                    if list.is_some() {
                        wrong = Some("only one list may be specified".to_string());
                    }
                    list = Some(value);
                    c.fields = *k == 'f';
                }
                'd' if value.len() > 1 => wrong = Some("the delimiter must be a single character".into()),
                'd' => (c.delimiter, given) = (value.bytes().next().unwrap_or(0), true),
                'o' => c.between = Some(value.clone().into_bytes()),
                's' => c.delimited = true,
                'z' => c.end = 0,
                'x' => complement = true,
                _ => {}
            }
        }
        let ranged = match (list, given && !c.fields) {
            (None, _) => Err("you must specify a list of bytes, characters, or fields".to_string()),
            (_, true) => Err("an input delimiter may be specified only when operating on fields".into()),
            (Some(list), _) => ranges(list, c.fields),
        };
        match (wrong, ranged) {
            (None, Ok(r)) => c.ranges = if complement { others(&r) } else { r },
            (Some(message), _) | (_, Err(message)) => return failed(&ctx, &message).await,
        }
        let names = if o.operands.is_empty() { vec!["-".to_string()] } else { o.operands };
        let mut code = 0;
        for name in &names {
            let mut from = match source(&ctx, name).await? {
                Ok(from) => from,
                Err(message) => {
                    ctx.stderr.write_all(message.as_bytes()).await?;
                    code = 1;
                    continue;
                }
            };
            let mut rest: Vec<u8> = vec![];
            while let Some(chunk) = from.next(&ctx).await? {
                let Some(end) = chunk.iter().rposition(|b| *b == c.end) else {
                    rest.extend_from_slice(&chunk);
                    continue;
                };
                let mut out = Vec::with_capacity(chunk.len());
                for (i, line) in chunk[..end].split(|b| *b == c.end).enumerate() {
                    if i == 0 && !rest.is_empty() {
                        rest.extend_from_slice(line);
                        c.line(&std::mem::take(&mut rest), &mut out);
                    } else {
                        c.line(line, &mut out);
                    }
                }
                rest = chunk[end + 1..].to_vec();
                if !write(&ctx, &out).await? {
                    return Ok(CommandStatus::with_code(GONE));
                }
            }
            if !rest.is_empty() {
                let mut out = vec![];
                c.line(&rest, &mut out);
                if !write(&ctx, &out).await? {
                    return Ok(CommandStatus::with_code(GONE));
                }
            }
        }
        Ok(CommandStatus::with_code(code))
    }
}
