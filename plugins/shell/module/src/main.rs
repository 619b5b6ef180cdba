//! The shell of openSkill: bashkit on WASI, with the files, the clock and the requests of
//! the sandbox. It runs one script and ends with its exit code.
//!
//! With the variable OPENSKILL_PROCESS it is a program that processes of a run start: it asks
//! the host for its arguments, and is the shell or the command that the first of them names.
//! Else standard input begins with eight hexadecimal digits, a length, and as many bytes: the
//! script's path and its arguments, each with a zero after it. The rest is the script's. All
//! before that first read is part of the image that every run starts from.

mod bc;
mod bc_number;
mod bc_parse;
mod commands;
mod curl;
mod cut;
mod date;
mod diff;
mod files;
mod filters;
mod host;
mod http;
mod process;
mod programs;
mod stdin;
mod tr;

use bashkit::{Bash, ExecOptions, ExecutionLimits, MemoryLimits, PosixFs, SessionLimits};
use std::io::{Read, Write};
use std::sync::Arc;

/// The sandbox bounds fuel, memory, time and output. What the shell bounds by itself would
/// cut results: only nesting stays, which would otherwise end in a trap.
fn limits() -> ExecutionLimits {
    ExecutionLimits {
        max_work_units: u64::MAX,
        max_aggregate_input_bytes: u64::MAX,
        max_live_intermediate_bytes: u64::MAX,
        max_stdout_bytes: usize::MAX,
        max_stderr_bytes: usize::MAX,
        max_input_bytes: usize::MAX,
        max_parser_operations: usize::MAX,
        max_word_split_fields: usize::MAX,
        max_word_split_bytes: usize::MAX,
        max_function_depth: FUNCTIONS,
        max_subst_depth: 64,
        max_subshell_depth: 64,
        parser_timeout: std::time::Duration::from_secs(1 << 32),
        ..ExecutionLimits::cli()
    }
}

/// How deep functions nest: a script can go on after the error, and not after the end of the
/// stack of the engine, which some 230 plain calls reach.
const FUNCTIONS: usize = 210;

/// Bytes of memory that are part of the image and free: memory never shrinks, so an instance
/// whose run made it larger cannot be put back to its image, and the next run starts anew.
const SPARE: usize = 4 << 20;

fn main() {
    let cwd = std::env::var("PWD").unwrap_or_else(|_| "/".into());
    let backend = files::Files::default();
    let entry = backend.entry();
    let mut builder = Bash::builder()
        .fs(Arc::new(PosixFs::new(backend)))
        .limits(limits())
        .session_limits(SessionLimits::unlimited())
        .memory_limits(MemoryLimits::unlimited())
        .username("skill")
        .hostname("sandbox")
        .cwd(cwd);
    let process = std::env::var_os("OPENSKILL_PROCESS").is_some();
    for (name, value) in std::env::vars().filter(|(name, _)| !process && name != programs::NAMES) {
        builder = builder.env(name, value);
    }
    for name in std::env::var(programs::NAMES).unwrap_or_default().split_whitespace() {
        builder = builder.command(name, programs::Program);
    }
    let mut bash = commands::add(builder).build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime of one thread");

    bashkit::prepare_jq();
    drop(std::hint::black_box(Vec::<u8>::with_capacity(SPARE)));

    // The seed and the clock of the image are those of all runs.
    let mut source = String::from("SECONDS=0; ");
    let mut options = ExecOptions::new();
    if process {
        let start = process::Start::ask();
        for (name, value) in &start.env {
            bash.set_env(name, value);
        }
        source.push_str(&format!("RANDOM={}; cd -- {}; unset OLDPWD; ", seed(), process::quoted(&start.dir)));
        if start.env.iter().all(|(name, _)| name != "PATH") {
            source.push_str("PATH=/usr/bin:/bin; ");
        }
        let what = match start.line() {
            Ok(what) => what,
            Err(message) => {
                eprintln!("bash: {message}");
                std::process::exit(2)
            }
        };
        *entry.lock().expect("one thread") = std::path::Path::new(&start.dir).join(&what.name);
        if what.from_input {
            let mut script = vec![];
            let _ = std::io::stdin().read_to_end(&mut script);
            source.push_str(&String::from_utf8_lossy(&script));
        }
        stdin::open(start.shares);
        source.push_str(&what.source);
        options = options.arg0(what.name).positional(what.args);
    } else {
        let mut args = arguments().into_iter();
        let script = args.next().unwrap_or_default();
        *entry.lock().expect("one thread") = script.clone().into();
        stdin::open(false);
        // The script is a child, as it is where bash is given a file: $0 and BASH_SOURCE are
        // its path.
        source.push_str(&format!("RANDOM={}; \"$0\" \"$@\"", seed()));
        options = options.arg0(script).positional(args);
    }
    let ended = runtime.block_on(async {
        bash.execute(&source)
            .options(options)
            .stdout_fn(|b| async move { Ok(std::io::stdout().write_all(&b)?) })
            .stderr_fn(|b| async move { Ok(std::io::stderr().write_all(&b)?) })
            .await
    });
    let code = match ended {
        Ok(result) => result.exit_code,
        Err(error) => {
            eprintln!("bash: {error}");
            2
        }
    };
    let _ = std::io::stdout().flush();
    std::process::exit(code & 0xff)
}

/// Reads the head of standard input, and no byte more.
fn arguments() -> Vec<String> {
    let mut digits = [0; 8];
    let mut input = std::io::stdin().lock();
    let size = input.read_exact(&mut digits).ok().and_then(|()| usize::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok());
    let mut head = vec![0; size.unwrap_or(0)];
    if input.read_exact(&mut head).is_err() {
        return vec![];
    }
    head.split_inclusive(|b| *b == 0).map(|a| String::from_utf8_lossy(&a[..a.len() - 1]).into_owned()).collect()
}

fn seed() -> u32 {
    let mut b = [0; 4];
    if let Ok(mut f) = std::fs::File::open("/dev/urandom") {
        let _ = f.read_exact(&mut b);
    }
    u32::from_le_bytes(b) >> 1
}
