//! Standard input, read as commands ask for it.

use crate::host::{For, borrowed, ready};
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// One that is inherited is shared with other processes: what this shell reads, they do not.
static SHARED: AtomicBool = AtomicBool::new(false);

/// How often in a row there was nothing.
static IDLE: AtomicU32 = AtomicU32::new(0);

const CHUNK: usize = 64 << 10;

/// Has commands read standard input, which other processes may read too.
pub fn open(shared: bool) {
    SHARED.store(shared, Relaxed);
    let _ = bashkit::STDIN.set(bashkit::StdinSource { read, wanted });
}

fn read(line: bool) -> Option<Vec<u8>> {
    if ready(&[(0, For::Reading)], 0)[0].is_none() {
        let idle = IDLE.fetch_add(1, Relaxed);
        crate::programs::wait_for_input(idle);
        return None;
    }
    IDLE.store(0, Relaxed);
    let mut bytes = vec![0; if line && SHARED.load(Relaxed) { 1 } else { CHUNK }];
    let n = borrowed(0).read(&mut bytes).unwrap_or(0);
    bytes.truncate(n);
    Some(bytes)
}

/// Whether a command reads its standard input, by what it is called with. One that is not known
/// here does not: it would take the input from the commands after it.
fn wanted(name: &str, args: &[String]) -> bool {
    let name = name.strip_prefix("/usr/bin/").or_else(|| name.strip_prefix("/bin/")).unwrap_or(name);
    if args.iter().any(|a| matches!(a.as_str(), "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")) {
        return true;
    }
    let has = |option: &str| args.iter().any(|a| a == option || a.starts_with('-') && !a.starts_with("--") && option.len() == 2 && a.contains(&option[1..]));
    match name {
        "tr" | "tee" | "xargs" | "envsubst" | "read" | "mapfile" | "readarray" | "tsort" => true,
        "diff" | "cmp" | "comm" | "join" => args.iter().any(|a| a == "-"),
        "dd" => !args.iter().any(|a| a.starts_with("if=")),
        "patch" => !has("-i"),
        "parallel" => !args.iter().any(|a| a.starts_with(":::")),
        "shuf" if has("-i") || has("-e") => false,
        "tar" => args.first().is_some_and(|a| a.contains(['x', 't'])) && (!has("-f") && !args[0].contains('f') || args.iter().any(|a| a == "-")),
        "grep" | "egrep" | "fgrep" | "rg" => {
            let given = args.iter().any(|a| matches!(a.as_str(), "-e" | "-f") || a.starts_with("--regexp") || a.starts_with("--file="));
            name != "rg" && !has("-r") && !has("-R") && operands(args, "efmABCD", usize::from(!given))
        }
        "sed" => operands(args, "efl", usize::from(!has("-e") && !has("-f"))),
        "awk" | "gawk" | "mawk" | "nawk" => {
            let given = args.iter().any(|a| a.starts_with("-f"));
            let program = args.iter().find(|a| a.trim_start().starts_with("BEGIN"));
            !program.is_some_and(|p| begins_only(p)) && operands(args, "Fvf", usize::from(!given))
        }
        "jq" => !has("-n") && !args.iter().any(|a| a == "--null-input") && operands(&jq_args(args), "fL", usize::from(!args.iter().any(|a| a == "-f" || a == "--from-file"))),
        "yq" | "tomlq" => !has("-n") && operands(args, "op", 1),
        "sort" => operands(args, "koSTt", 0),
        "cut" => operands(args, "bcdf", 0),
        "head" | "tail" => operands(args, "ncs", 0),
        "nl" => operands(args, "bvnwshdfil", 0),
        "fold" | "fmt" | "pr" | "base64" | "base32" | "basenc" => operands(args, "wlp", 0),
        "paste" | "tac" => operands(args, "ds", 0),
        "column" => operands(args, "soNRHTcWE", 0),
        "od" | "xxd" | "hexdump" | "strings" => operands(args, "AjNtwlcsgne", 0),
        "split" => operands(args, "abCln", 0),
        "iconv" => operands(args, "fto", 0),
        "cat" | "rev" | "uniq" | "wc" | "expand" | "unexpand" | "numfmt" | "factor" | "md5sum" | "sha1sum" | "sha224sum" | "sha256sum"
        | "sha384sum" | "sha512sum" | "shasum" | "b2sum" | "cksum" | "sum" | "gzip" | "gunzip" | "zcat" | "bzip2" | "bunzip2" | "bzcat" | "less"
        | "more" | "json" | "csv" | "bc" | "openssl" => operands(args, "", 0),
        "sh" | "bash" => operands(args, "oO", 0) && !has("-c"),
        "env" | "timeout" | "nohup" | "nice" | "sudo" | "command" | "builtin" | "exec" | "stdbuf" | "time" => inner(args).is_some_and(|i| wanted(&args[i], &args[i + 1..])),
        _ => false,
    }
}

/// Whether no file is named after the first operands, or "-" is.
fn operands(args: &[String], with_value: &str, first: usize) -> bool {
    let (mut n, mut at, mut options) = (0, 0, true);
    while at < args.len() {
        let a = &args[at];
        at += 1;
        if options && a == "--" {
            options = false;
        } else if options && a.starts_with('-') && a.len() > 1 {
            if !a.starts_with("--") && a.chars().last().is_some_and(|c| with_value.contains(c)) && a.len() == 2 {
                at += 1;
            }
        } else {
            n += 1;
            if n > first {
                return a == "-";
            }
        }
    }
    true
}

/// The arguments without variables, which are no files.
fn jq_args(args: &[String]) -> Vec<String> {
    let (mut list, mut at) = (vec![], 0);
    while at < args.len() {
        match args[at].as_str() {
            "--args" | "--jsonargs" => break,
            "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => at += 3,
            "--indent" => at += 2,
            a => {
                list.push(a.to_string());
                at += 1;
            }
        }
    }
    list
}

/// Whether a program of awk is one BEGIN block, after which no input is read.
fn begins_only(program: &str) -> bool {
    let mut depth = 0;
    for (i, c) in program.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == '}' && depth == 0 {
            return program[i + 1..].trim().is_empty();
        }
    }
    false
}

/// Where the command is that another one runs: after options, variables and durations.
fn inner(args: &[String]) -> Option<usize> {
    args.iter().position(|a| !a.starts_with('-') && !a.contains('=') && !a.starts_with(|c: char| c.is_ascii_digit()))
}
