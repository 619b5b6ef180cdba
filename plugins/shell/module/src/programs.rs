//! Programs that are not part of the shell: processes of the run, started through the host.

use crate::host::{For, ask, borrowed, ready};
use bashkit::{Command, CommandContext, CommandInput, CommandOutput, CommandStatus, Error, Result, async_trait};
use serde_json::json;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;

/// The names of the programs there are, in the environment of the image.
pub const NAMES: &str = "OPENSKILL_PROGRAMS";

/// A program that is found by its name.
pub struct Program;

/// What all programs of the shell wait for: whoever waits, waits for all of it.
static WAITING: Mutex<Vec<(RawFd, For)>> = Mutex::new(vec![]);

/// Whether a command of the shell waits for its own standard input.
static INPUT: AtomicBool = AtomicBool::new(false);

/// How often the rest of the shell has a turn before it waits as a whole.
const TURNS: u32 = 3;

/// The shortest and the longest wait, in nanoseconds: what happens in the shell meanwhile, such as
/// the end of a sleep, is seen after it.
const SHORT: u64 = 1_000_000;
const LONG: u64 = 32_000_000;

/// A process with the shell's ends of its streams. It is ended where the shell drops it.
struct Started {
    pid: u64,
    input: Option<RawFd>,          // written
    unread: Option<RawFd>,         // the other end of it, for what the process has not read
    outputs: [Option<RawFd>; 2],   // standard output and error
    exit: Option<i32>,
}

/// All that the shell waits for now.
fn awaited() -> Vec<(RawFd, For)> {
    let mut all = WAITING.lock().expect("one thread").clone();
    if INPUT.swap(false, Relaxed) {
        all.push((0, For::Reading));
    }
    all
}

/// Waits for standard input, where nothing was there that often. Where programs run, they wait
/// for it too.
pub fn wait_for_input(idle: u32) {
    INPUT.store(true, Relaxed);
    if idle >= TURNS && WAITING.lock().expect("one thread").is_empty() {
        ready(&awaited(), (SHORT << (idle - TURNS).min(8)).min(LONG));
    }
}

fn close(fd: RawFd) {
    WAITING.lock().expect("one thread").retain(|(other, _)| *other != fd);
    drop(unsafe { std::fs::File::from_raw_fd(fd) });
}

impl Started {
    /// Looks whether the process has ended, and waits for that if it is to.
    fn wait(&mut self, block: bool) -> bool {
        if self.exit.is_none() {
            let told = ask(&json!({"op": "wait", "pid": self.pid, "block": block}));
            self.exit = match (told["exit"].as_i64(), told["signal"].as_i64()) {
                (Some(code), _) => Some((code & 0xff) as i32),
                (_, Some(signal)) => Some(128 + signal as i32),
                _ if told["error"].is_string() => Some(1),
                _ => None,
            };
        }
        self.exit.is_some()
    }

    fn done(&self) -> bool {
        self.outputs.iter().all(Option::is_none)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.exit.is_none() {
            ask(&json!({"op": "kill", "pid": self.pid, "signal": 15}));
        }
        for fd in [self.input, self.unread, self.outputs[0], self.outputs[1]].into_iter().flatten() {
            close(fd);
        }
        self.wait(true);
    }
}

/// Starts the program, or says why not, as a shell does.
fn start(ctx: &CommandContext<'_>) -> std::result::Result<Started, (i32, String)> {
    let pipe = ask(&json!({"op": "pipe"}));
    let (Some(unread), Some(input)) = (pipe["read"].as_i64(), pipe["write"].as_i64()) else {
        let code = if pipe["error"] == "EACCES" { 127 } else { 126 };
        let why = if code == 127 { "command not found".into() } else { text(&pipe["message"]) };
        return Err((code, format!("{}: {why}", ctx.name)));
    };
    let (unread, input) = (unread as RawFd, input as RawFd);
    let dir = ctx.cwd.to_string_lossy();
    let env = ctx.env.iter().filter(|(k, _)| *k != "PWD").map(|(k, v)| format!("{k}={v}"));
    let mut env: Vec<_> = env.chain([format!("PWD={dir}")]).collect();
    env.sort();
    let args: Vec<&str> = std::iter::once(ctx.name).chain(ctx.args.iter().map(String::as_str)).collect();
    let one = ctx.stdout.is_same(&ctx.stderr);
    let told = ask(&json!({
        "op": "start", "args": args, "env": env, "dir": dir,
        "stdin": unread, "stdout": "pipe", "stderr": if one { "stdout" } else { "pipe" },
    }));
    let Some(pid) = told["pid"].as_u64() else {
        close(unread);
        close(input);
        let message = text(&told["message"]);
        return Err(match told["error"].as_str() {
            Some("ENOENT") => (127, format!("{}: command not found", ctx.name)),
            Some("EAGAIN") => (126, format!("{}: Resource temporarily unavailable: {message}", ctx.name)),
            Some("E2BIG") => (126, format!("{}: Argument list too long", ctx.name)),
            _ => (126, format!("{}: {message}", ctx.name)),
        });
    };
    let end = |name: &str| told[name].as_i64().map(|fd| fd as RawFd);
    let outputs = [end("stdout"), end("stderr")];
    let mut waiting = WAITING.lock().expect("one thread");
    waiting.extend(outputs.iter().flatten().map(|fd| (*fd, For::Reading)));
    Ok(Started { pid, input: Some(input), unread: Some(unread), outputs, exit: None })
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or("the host did not answer").to_string()
}

/// What the process is to read, as it comes.
struct Feed {
    next: Option<std::pin::Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>>> + Send>>>,
    bytes: Vec<u8>, // that were not written yet
}

fn chunk(input: &CommandInput) -> std::pin::Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>>> + Send>> {
    let input = input.clone();
    Box::pin(async move { input.read_chunk().await })
}

impl Feed {
    /// Takes what is there, and writes what there is room for. It reports whether something
    /// was done.
    async fn go_on(&mut self, p: &mut Started, input: &CommandInput) -> Result<bool> {
        let Some(to) = p.input else { return Ok(false) };
        if self.bytes.is_empty() && let Some(next) = &mut self.next {
            match poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await {
                Poll::Pending => return Ok(false),
                Poll::Ready(got) => match got? {
                    Some(bytes) => (self.bytes, self.next) = (bytes, Some(chunk(input))),
                    None => self.next = None,
                },
            }
        }
        if self.bytes.is_empty() {
            close(to);
            p.input = None;
            return Ok(true);
        }
        let room = ready(&[(to, For::Writing)], 0)[0];
        let mut waiting = WAITING.lock().expect("one thread");
        waiting.retain(|(fd, _)| *fd != to);
        let Some(room) = room else {
            waiting.push((to, For::Writing));
            return Ok(false);
        };
        let n = self.bytes.len().min(room.max(1) as usize);
        borrowed(to).write_all(&self.bytes[..n])?;
        self.bytes.drain(..n);
        Ok(true)
    }
}

/// A command that is a program in Python.
pub struct InPython(&'static str);

/// sqlite3 by Python's module of that name.
pub const SQLITE: InPython = InPython(include_str!("database.py"));

/// zip and unzip by Python's zipfile. Those of bashkit have a format of their own.
pub const ARCHIVE: InPython = InPython(include_str!("archive.py"));

#[async_trait]
impl Command for InPython {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let mut args = vec!["-c".to_string(), self.0.to_string(), ctx.name.to_string()];
        args.extend_from_slice(ctx.args);
        let mut ctx = ctx;
        (ctx.name, ctx.args) = ("python3", &args);
        Program.execute(ctx).await
    }
}

#[async_trait]
impl Command for Program {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let mut p = match start(&ctx) {
            Ok(started) => started,
            Err((code, message)) => {
                ctx.stderr.write_all(format!("bash: {message}\n").as_bytes()).await?;
                return Ok(CommandStatus::with_code(code));
            }
        };
        let outputs = [&ctx.stdout, &ctx.stderr];
        let mut feed = Feed { next: Some(chunk(&ctx.stdin)), bytes: vec![] };
        let mut idle = 0;
        while !p.done() {
            let fed = feed.go_on(&mut p, &ctx.stdin).await?;
            let read = drain(&mut p, &outputs).await?;
            if fed || read {
                idle = 0;
                continue;
            }
            if idle >= TURNS {
                let all = awaited();
                let wait = (SHORT << (idle - TURNS).min(8)).min(LONG);
                let timed = ready(&all, wait).iter().all(Option::is_none);
                // One that has ended may have left its streams to another process.
                if timed && p.wait(false) && !drain(&mut p, &outputs).await? {
                    break;
                }
            }
            idle += 1;
            tokio::task::yield_now().await; // another part of the shell may have something to do
        }
        // It may go on reading after it has closed its output.
        while p.input.is_some() && !p.wait(false) {
            if !feed.go_on(&mut p, &ctx.stdin).await? {
                let all = awaited();
                ready(&all, SHORT);
                tokio::task::yield_now().await;
            }
        }
        p.wait(true);
        give_back(&mut p, feed, &ctx.stdin).await?;
        Ok(CommandStatus::with_code(p.exit.unwrap_or(1)))
    }
}

/// Writes what the process has written, and reports whether that was something.
async fn drain(p: &mut Started, to: &[&CommandOutput; 2]) -> Result<bool> {
    let mut some = false;
    for i in 0..2 {
        let Some(fd) = p.outputs[i] else { continue };
        if ready(&[(fd, For::Reading)], 0)[0].is_none() {
            continue;
        }
        some = true;
        let mut bytes = vec![0; 64 << 10];
        let n = borrowed(fd).read(&mut bytes).unwrap_or(0);
        let gone = n > 0
            && match to[i].write_all(&bytes[..n]).await {
                Err(Error::Io(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => true, // the process finds out as it writes
                other => other.map(|()| false)?,
            };
        if n == 0 || gone {
            close(fd);
            p.outputs[i] = None;
        }
    }
    Ok(some)
}

/// Has the next command read what this one was given and has not read.
async fn give_back(p: &mut Started, feed: Feed, input: &CommandInput) -> Result<()> {
    if let Some(fd) = p.input.take() {
        close(fd);
    }
    let mut rest = vec![];
    if let Some(fd) = p.unread.take() {
        borrowed(fd).read_to_end(&mut rest)?;
        close(fd);
    }
    rest.extend_from_slice(&feed.bytes);
    drop(feed.next);
    input.unread(&rest).await;
    Ok(())
}
