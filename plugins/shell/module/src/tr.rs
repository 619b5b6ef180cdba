//! tr by bytes, as GNU's is, on input as it comes.

use crate::filters::{GONE, failed, help, options, write};
use bashkit::{Command, CommandContext, CommandStatus, Result, async_trait};

pub struct Tr;

/// The bytes of a set of tr. An empty range `[x*]` is filled to a length.
fn set(text: &str, fill: usize) -> std::result::Result<Vec<u8>, String> {
    let raw = text.as_bytes();
    let mut list: Vec<(u8, bool)> = vec![]; // a byte, and whether it was escaped
    let mut i = 0;
    while i < raw.len() {
        let (mut b, mut escaped) = (raw[i], false);
        i += 1;
        if b == b'\\' && i < raw.len() {
            escaped = true;
            b = match raw[i] {
                b'a' => 7,
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 11,
                b'0'..=b'7' => {
                    let digits = raw[i..].iter().take(3).take_while(|d| (b'0'..=b'7').contains(d)).count();
                    let digits = if digits == 3 && raw[i] > b'3' { 2 } else { digits };
                    let n = raw[i..i + digits].iter().fold(0, |n, d| n * 8 + (d - b'0'));
                    i += digits - 1;
                    n
                }
                other => other,
            };
            i += 1;
        }
        list.push((b, escaped));
    }
    let plain = |i: usize, b: u8| list.get(i) == Some(&(b, false));
    let (mut out, mut i) = (vec![], 0);
    while i < list.len() {
        let b = list[i].0;
        if plain(i, b'[') && (plain(i + 1, b':') || plain(i + 1, b'=')) {
            let mark = list[i + 1].0;
            if let Some(end) = (i + 2..list.len().saturating_sub(1)).find(|&j| plain(j, mark) && plain(j + 1, b']')) {
                let name: Vec<u8> = list[i + 2..end].iter().map(|t| t.0).collect();
                if mark == b'=' && name.len() == 1 {
                    out.push(name[0]);
                } else {
                    out.extend(class(&String::from_utf8_lossy(&name))?);
                }
                i = end + 2;
                continue;
            }
        }
        if plain(i, b'[') && plain(i + 2, b'*') && let Some(end) = (i + 3..list.len()).find(|&j| plain(j, b']')) {
            let count: String = list[i + 3..end].iter().map(|t| t.0 as char).collect();
            let radix = if count.starts_with('0') { 8 } else { 10 };
            let n = if count.is_empty() { 0 } else { usize::from_str_radix(&count, radix).map_err(|_| format!("invalid repeat count '{count}' in [c*n] construct"))? };
            let n = if n == 0 { fill.saturating_sub(out.len()) } else { n.min(1 << 16) };
            out.extend(std::iter::repeat_n(list[i + 1].0, n));
            i = end + 1;
            continue;
        }
        if plain(i + 1, b'-') && i + 2 < list.len() {
            let end = list[i + 2].0;
            if end < b {
                return Err(format!("range-endpoints of '{}-{}' are in reverse collating sequence order", b.escape_ascii(), end.escape_ascii()));
            }
            out.extend(b..=end);
            i += 3;
        } else {
            out.push(b);
            i += 1;
        }
    }
    Ok(out)
}

fn class(name: &str) -> std::result::Result<Vec<u8>, String> {
    let of: fn(&u8) -> bool = match name {
        "alnum" => u8::is_ascii_alphanumeric,
        "alpha" => u8::is_ascii_alphabetic,
        "blank" => |b| matches!(b, b' ' | b'\t'),
        "cntrl" => u8::is_ascii_control,
        "digit" => u8::is_ascii_digit,
        "graph" => u8::is_ascii_graphic,
        "lower" => u8::is_ascii_lowercase,
        "print" => |b| matches!(b, b' '..=b'~'),
        "punct" => u8::is_ascii_punctuation,
        "space" => |b| matches!(b, b' ' | b'\t'..=b'\r'),
        "upper" => u8::is_ascii_uppercase,
        "xdigit" => u8::is_ascii_hexdigit,
        _ => return Err(format!("invalid character class '{name}'")),
    };
    Ok((0..=255).filter(of).collect())
}

#[async_trait]
impl Command for Tr {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        if help(&ctx, "tr [OPTION]... STRING1 [STRING2]\nTranslate, squeeze, and/or delete characters from standard input,\nwriting to standard output.").await? {
            return Ok(CommandStatus::success());
        }
        let first = ctx.args.iter().position(|a| !a.starts_with('-') || a == "-").unwrap_or(ctx.args.len());
        let (opts, sets) = match ctx.args.iter().position(|a| a == "--") {
            Some(i) if i < first => (&ctx.args[..i], &ctx.args[i + 1..]),
            _ => ctx.args.split_at(first),
        };
        let o = match options(opts, "cCdst", &[("complement", 'c'), ("delete", 'd'), ("squeeze-repeats", 's'), ("truncate-set1", 't')]) {
            Ok(o) => o,
            Err(message) => return failed(&ctx, &message).await,
        };
        let on = |letters: &str| o.list.iter().any(|(c, _)| letters.contains(*c));
        let (complement, delete, squeeze) = (on("cC"), on("d"), on("s"));
        let wants = if delete == squeeze { 2 } else { 1 };
        let message = match sets {
            [] => Some("missing operand".to_string()),
            [one] if wants == 2 => {
                let with = if delete { "Two strings must be given when both deleting and squeezing repeats." } else { "Two strings must be given when translating." };
                Some(format!("missing operand after '{one}'\n{with}"))
            }
            [_, two] if delete && !squeeze => Some(format!("extra operand '{two}'\nOnly one string may be given when deleting without squeezing repeats.")),
            [_, _, three, ..] => Some(format!("extra operand '{three}'")),
            _ => None,
        };
        if let Some(message) = message {
            return failed(&ctx, &message).await;
        }
        let made = set(&sets[0], 0).and_then(|mut one| {
            if complement {
                let all = one;
                one = (0..=255).filter(|b| !all.contains(b)).collect();
            }
            let two = sets.get(1).map(|s| set(s, one.len())).transpose()?;
            if two.as_ref().is_some_and(Vec::is_empty) && !delete {
                return Err("when not truncating set1, string2 must be non-empty".into());
            }
            Ok((one, two))
        });
        let (mut one, two) = match made {
            Ok(made) => made,
            Err(message) => {
                ctx.stderr.write_all(format!("tr: {message}\n").as_bytes()).await?;
                return Ok(CommandStatus::with_code(1));
            }
        };
        let mut to: [u8; 256] = std::array::from_fn(|i| i as u8);
        let (mut gone, mut once) = ([false; 256], [false; 256]);
        for b in two.as_ref().unwrap_or(&one) {
            once[*b as usize] = squeeze;
        }
        if delete {
            one.iter().for_each(|b| gone[*b as usize] = true);
        } else if let Some(two) = &two {
            if on("t") {
                one.truncate(two.len());
            }
            for (i, b) in one.iter().enumerate() {
                to[*b as usize] = two[i.min(two.len() - 1)];
            }
        }
        let mut last = None;
        while let Some(mut chunk) = ctx.stdin.read_chunk().await? {
            if delete || squeeze {
                chunk.retain_mut(|b| {
                    if gone[*b as usize] {
                        return false;
                    }
                    *b = to[*b as usize];
                    let again = once[*b as usize] && last == Some(*b);
                    last = Some(*b);
                    !again
                });
            } else {
                chunk.iter_mut().for_each(|b| *b = to[*b as usize]);
            }
            if !write(&ctx, &chunk).await? {
                return Ok(CommandStatus::with_code(GONE));
            }
        }
        Ok(CommandStatus::success())
    }
}

