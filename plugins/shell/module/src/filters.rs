//! wc and tee on input as it comes, and what such filters share.

use crate::commands::reason;
use bashkit::{Command, CommandContext, CommandStatus, Error, Result, async_trait};

/// The options and operands of a command: letters, those with a value followed by ':', and long
/// names of letters.
pub struct Options {
    pub list: Vec<(char, String)>,
    pub operands: Vec<String>,
}

pub fn options(args: &[String], letters: &str, long: &[(&str, char)]) -> std::result::Result<Options, String> {
    let takes = |c: char| letters.contains(&format!("{c}:"));
    let (mut list, mut operands, mut at) = (vec![], vec![], 0);
    while at < args.len() {
        let a = &args[at];
        at += 1;
        if a == "--" {
            operands.extend_from_slice(&args[at..]);
            break;
        }
        if let Some(name) = a.strip_prefix("--") {
            let (name, value) = name.split_once('=').map_or((name, None), |(n, v)| (n, Some(v.to_string())));
            let mut like = long.iter().filter(|(l, _)| l.starts_with(name));
            let Some((_, c)) = long.iter().find(|(l, _)| *l == name).or(like.next()) else {
                return Err(format!("unrecognized option '--{name}'"));
            };
            let value = match (takes(*c), value) {
                (true, None) => {
                    at += 1;
                    args.get(at - 1).cloned().ok_or(format!("option '--{name}' requires an argument"))?
                }
                (_, value) => value.unwrap_or_default(),
            };
            list.push((*c, value));
        } else if a.len() > 1 && a.starts_with('-') {
            for (i, c) in a.char_indices().skip(1) {
                if c == ':' || !letters.contains(c) {
                    return Err(format!("invalid option -- '{c}'"));
                }
                if takes(c) {
                    let mut value = a[i + c.len_utf8()..].to_string();
                    if value.is_empty() {
                        value = args.get(at).cloned().ok_or(format!("option requires an argument -- '{c}'"))?;
                        at += 1;
                    }
                    list.push((c, value));
                    break;
                }
                list.push((c, String::new()));
            }
        } else {
            operands.push(a.clone());
        }
    }
    Ok(Options { list, operands })
}

pub async fn failed(ctx: &CommandContext<'_>, message: &str) -> Result<CommandStatus> {
    let text = format!("{0}: {message}\nTry '{0} --help' for more information.\n", ctx.name);
    ctx.stderr.write_all(text.as_bytes()).await?;
    Ok(CommandStatus::with_code(1))
}

/// Writes, and reports whether somebody still reads.
pub async fn write(ctx: &CommandContext<'_>, bytes: &[u8]) -> Result<bool> {
    match ctx.stdout.write_all(bytes).await {
        Err(Error::Io(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        other => other.map(|()| true),
    }
}

pub const GONE: i32 = 141;

/// Prints help, if it is asked for.
pub async fn help(ctx: &CommandContext<'_>, usage: &str) -> Result<bool> {
    let asked = ctx.args.iter().take_while(|a| *a != "--").any(|a| a == "--help");
    if asked {
        ctx.stdout.write_all(format!("Usage: {usage}\n").as_bytes()).await?;
    }
    Ok(asked)
}

/// The input of a command: its files in order, or standard input.
pub enum Source {
    Stdin,
    Bytes(Vec<u8>),
}

pub async fn source(ctx: &CommandContext<'_>, name: &str) -> Result<std::result::Result<Source, String>> {
    if name == "-" || name == "/dev/stdin" {
        return Ok(Ok(Source::Stdin));
    }
    Ok(ctx.fs.read_file(&ctx.cwd.join(name)).await.map(Source::Bytes).map_err(|e| format!("{}: {name}: {}\n", ctx.name, reason(&e))))
}

impl Source {
    pub async fn next(&mut self, ctx: &CommandContext<'_>) -> Result<Option<Vec<u8>>> {
        match self {
            Source::Stdin => ctx.stdin.read_chunk().await,
            Source::Bytes(b) => Ok(Some(std::mem::take(b)).filter(|b| !b.is_empty())),
        }
    }
}

pub struct Wc;

#[derive(Default, Clone, Copy)]
struct Counts {
    lines: usize,
    words: usize,
    chars: usize,
    bytes: usize,
    longest: usize,
    width: usize, // of the line so far
    word: bool,   // within one
}

impl Counts {
    fn add(&mut self, bytes: &[u8], all: bool) {
        self.bytes += bytes.len();
        if !all {
            self.lines += bytes.iter().filter(|b| **b == b'\n').count();
            return;
        }
        for &b in bytes {
            let space = matches!(b, b' ' | b'\t'..=b'\r');
            self.words += usize::from(!space && !self.word);
            self.word = !space;
            self.lines += usize::from(b == b'\n');
            let begins = usize::from(b & 0xc0 != 0x80);
            self.chars += begins;
            match b {
                b'\n' | b'\r' | 12 => {
                    self.longest = self.longest.max(self.width);
                    self.width = 0;
                }
                b'\t' => self.width += 8 - self.width % 8,
                _ => self.width += usize::from(b >= b' ' && b != 127) & begins,
            }
        }
    }
}

#[async_trait]
impl Command for Wc {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        if help(&ctx, "wc [OPTION]... [FILE]...\nPrint newline, word, and byte counts for each FILE, and a total line if\nmore than one FILE is specified.").await? {
            return Ok(CommandStatus::success());
        }
        let long = [("bytes", 'c'), ("chars", 'm'), ("lines", 'l'), ("words", 'w'), ("max-line-length", 'L')];
        let o = match options(ctx.args, "cmlwL", &long) {
            Ok(o) => o,
            Err(message) => return failed(&ctx, &message).await,
        };
        let mut show: Vec<char> = "lwmcL".chars().filter(|c| o.list.iter().any(|(k, _)| k == c)).collect();
        if show.is_empty() {
            show = vec!['l', 'w', 'c'];
        }
        let all = show.iter().any(|c| "wmL".contains(*c));
        let names = if o.operands.is_empty() { vec!["-".to_string()] } else { o.operands.clone() };
        let (mut total, mut lines, mut code) = (Counts::default(), vec![], 0);
        let (mut sizes, mut files) = (0, true);
        for name in &names {
            let mut from = match source(&ctx, name).await? {
                Ok(from) => from,
                Err(message) => {
                    ctx.stderr.write_all(message.as_bytes()).await?;
                    code = 1;
                    continue;
                }
            };
            files &= matches!(from, Source::Bytes(_));
            let mut c = Counts::default();
            while let Some(chunk) = from.next(&ctx).await? {
                c.add(&chunk, all);
            }
            c.longest = c.longest.max(c.width);
            sizes += c.bytes;
            (total.lines, total.words, total.chars, total.bytes) = (total.lines + c.lines, total.words + c.words, total.chars + c.chars, total.bytes + c.bytes);
            total.longest = total.longest.max(c.longest);
            lines.push((c, if o.operands.is_empty() { None } else { Some(name.as_str()) }));
        }
        if names.len() > 1 {
            lines.push((total, Some("total")));
        }
        let width = match (show.len(), names.len(), files) {
            (1, 1, _) => 1,
            (_, _, true) => sizes.to_string().len(),
            _ => sizes.to_string().len().max(7),
        };
        let mut out = String::new();
        for (c, name) in lines {
            let numbers = show.iter().map(|k| match k {
                'l' => c.lines,
                'w' => c.words,
                'm' => c.chars,
                'c' => c.bytes,
                _ => c.longest,
            });
            out.push_str(&numbers.map(|n| format!("{n:>width$}")).collect::<Vec<_>>().join(" "));
            out.push_str(&name.map_or(String::new(), |n| format!(" {n}")));
            out.push('\n');
        }
        Ok(CommandStatus::with_code(if write(&ctx, out.as_bytes()).await? { code } else { GONE }))
    }
}

pub struct Tee;

#[async_trait]
impl Command for Tee {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        if help(&ctx, "tee [OPTION]... [FILE]...\nCopy standard input to each FILE, and also to standard output.").await? {
            return Ok(CommandStatus::success());
        }
        let o = match options(ctx.args, "aip", &[("append", 'a'), ("ignore-interrupts", 'i'), ("output-error", 'p')]) {
            Ok(o) => o,
            Err(message) => return failed(&ctx, &message).await,
        };
        let append = o.list.iter().any(|(c, _)| *c == 'a');
        let (mut code, mut files) = (0, vec![]);
        for name in &o.operands {
            let path = ctx.cwd.join(name);
            let shown = match name.as_str() {
                "/dev/stdout" => Some(&ctx.stdout),
                "/dev/stderr" | "/dev/tty" => Some(&ctx.stderr),
                _ => None,
            };
            let opened = match (shown, append) {
                (Some(_), _) => Ok(()),
                (None, true) => ctx.fs.append_file(&path, b"").await,
                (None, false) => ctx.fs.write_file(&path, b"").await,
            };
            match opened {
                Ok(()) => files.push((path, shown)),
                Err(e) => {
                    ctx.stderr.write_all(format!("tee: {name}: {}\n", reason(&e)).as_bytes()).await?;
                    code = 1;
                }
            }
        }
        while let Some(chunk) = ctx.stdin.read_chunk().await? {
            if !write(&ctx, &chunk).await? {
                return Ok(CommandStatus::with_code(GONE));
            }
            for (path, shown) in &files {
                match shown {
                    Some(output) => output.write_all(&chunk).await?,
                    None => ctx.fs.append_file(path, &chunk).await?,
                }
            }
        }
        Ok(CommandStatus::with_code(code))
    }
}
