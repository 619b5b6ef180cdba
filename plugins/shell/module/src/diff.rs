//! diff, with folders, and the options that scripts use. bashkit's has -u and -q alone.

use crate::commands::{read, reason};
use bashkit::{Command, CommandContext, CommandStatus, Result, async_trait};
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};
use std::path::Path;

pub struct Diff;

#[derive(Default)]
struct Options {
    context: Option<usize>,
    brief: bool,
    same: bool,
    recursive: bool,
    missing_is_empty: bool,
    ignore_case: bool,
    ignore_space: bool,
    ignore_space_change: bool,
    ignore_blank: bool,
    labels: Vec<String>,
    given: String,
}

const USAGE: &str = "diff: Try 'diff --help' for more information.\n";

#[async_trait]
impl Command for Diff {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let (mut o, mut names, mut args) = (Options::default(), vec![], ctx.args.iter());
        while let Some(arg) = args.next() {
            let mut takes_value = false;
            match arg.as_str() {
                "--brief" => o.brief = true,
                "--report-identical-files" => o.same = true,
                "--recursive" => o.recursive = true,
                "--new-file" => o.missing_is_empty = true,
                "--unified" => o.context = Some(3),
                "--ignore-case" => o.ignore_case = true,
                "--ignore-all-space" => o.ignore_space = true,
                "--ignore-space-change" => o.ignore_space_change = true,
                "--ignore-blank-lines" => o.ignore_blank = true,
                "--text" | "--color=never" | "--color=auto" | "--strip-trailing-cr" => {}
                "--label" => {
                    o.labels.extend(args.next().cloned());
                    takes_value = true;
                }
                a if a.starts_with("--label=") => o.labels.push(a[8..].into()),
                a if a.starts_with("--unified=") => o.context = a[10..].parse().ok(),
                a if a == "-" || !a.starts_with('-') => {
                    names.push(a.to_string());
                    takes_value = true;
                }
                a if a.starts_with("--") => return fail(&ctx, &format!("diff: unrecognized option '{a}'\n{USAGE}")).await,
                a => {
                    let letters: Vec<char> = a[1..].chars().collect();
                    let mut i = 0;
                    while i < letters.len() {
                        match letters[i] {
                            'u' => o.context = Some(o.context.unwrap_or(3)),
                            'U' => {
                                let rest: String = letters[i + 1..].iter().collect();
                                o.context = if rest.is_empty() { args.next().and_then(|n| n.parse().ok()) } else { rest.parse().ok() };
                                break;
                            }
                            'q' => o.brief = true,
                            's' => o.same = true,
                            'r' => o.recursive = true,
                            'N' => o.missing_is_empty = true,
                            'i' => o.ignore_case = true,
                            'w' => o.ignore_space = true,
                            'b' => o.ignore_space_change = true,
                            'B' => o.ignore_blank = true,
                            'a' => {}
                            'L' => o.labels.extend(args.next().cloned()),
                            c => return fail(&ctx, &format!("diff: invalid option -- '{c}'\n{USAGE}")).await,
                        }
                        i += 1;
                    }
                }
            }
            if !takes_value {
                o.given.push(' ');
                o.given.push_str(arg);
            }
        }
        let [a, b] = names.as_slice() else {
            let what = names.last().map_or("diff: missing operand".into(), |n| format!("diff: missing operand after '{n}'"));
            return fail(&ctx, &format!("{what}\n{USAGE}")).await;
        };
        let code = compare(&ctx, &o, a, b).await?;
        Ok(CommandStatus::with_code(code))
    }
}

async fn fail(ctx: &CommandContext<'_>, message: &str) -> Result<CommandStatus> {
    ctx.stderr.write_all(message.as_bytes()).await?;
    Ok(CommandStatus::with_code(2))
}

async fn is_folder(ctx: &CommandContext<'_>, name: &str) -> bool {
    name != "-" && ctx.fs.stat(&ctx.cwd.join(name)).await.is_ok_and(|m| m.file_type.is_dir())
}

async fn compare(ctx: &CommandContext<'_>, o: &Options, a: &str, b: &str) -> Result<i32> {
    match (is_folder(ctx, a).await, is_folder(ctx, b).await) {
        (true, true) => folders(ctx, o, a, b).await,
        (false, false) => files(ctx, o, a, b, false).await,
        (false, true) => files(ctx, o, a, &below(b, base(a)), false).await,
        (true, false) => files(ctx, o, &below(a, base(b)), b, false).await,
    }
}

fn base(name: &str) -> &str {
    Path::new(name).file_name().map_or(name, |n| n.to_str().unwrap_or(name))
}

fn below(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

async fn folders(ctx: &CommandContext<'_>, o: &Options, a: &str, b: &str) -> Result<i32> {
    let mut open = vec![(a.to_string(), b.to_string(), None::<String>)];
    let mut code = 0;
    // A stack, deepest entries first, so that the order is that of the names.
    while let Some((a, b, name)) = open.pop() {
        let Some(name) = name else {
            let mut names = vec![];
            for folder in [&a, &b] {
                names.extend(ctx.fs.read_dir(&ctx.cwd.join(folder)).await.unwrap_or_default().into_iter().map(|e| e.name));
            }
            names.sort();
            names.dedup();
            open.extend(names.into_iter().rev().map(|n| (a.clone(), b.clone(), Some(n))));
            continue;
        };
        let (left, right) = (below(&a, &name), below(&b, &name));
        let there = |p: String| async move { ctx.fs.exists(&ctx.cwd.join(p)).await.unwrap_or(false) };
        let (has_left, has_right) = (there(left.clone()).await, there(right.clone()).await);
        let (left_folder, right_folder) = (is_folder(ctx, &left).await, is_folder(ctx, &right).await);
        if (!has_left || !has_right) && !(o.missing_is_empty && o.recursive) {
            let folder = if has_left { &a } else { &b };
            ctx.stdout.write_all(format!("Only in {folder}: {name}\n").as_bytes()).await?;
            code = code.max(1);
        } else if left_folder && right_folder || left_folder && !has_right || right_folder && !has_left {
            if o.recursive {
                open.push((left, right, None));
            } else {
                ctx.stdout.write_all(format!("Common subdirectories: {left} and {right}\n").as_bytes()).await?;
            }
        } else if left_folder || right_folder {
            let kind = |folder| if folder { "directory" } else { "regular file" };
            let line = format!("File {left} is a {} while file {right} is a {}\n", kind(left_folder), kind(right_folder));
            ctx.stdout.write_all(line.as_bytes()).await?;
            code = code.max(1);
        } else {
            code = code.max(files(ctx, o, &left, &right, true).await?);
        }
    }
    Ok(code)
}

async fn files(ctx: &CommandContext<'_>, o: &Options, a: &str, b: &str, heading: bool) -> Result<i32> {
    let mut texts = vec![];
    for name in [a, b] {
        match read(ctx, name).await {
            Ok(text) => texts.push(text),
            Err(_) if o.missing_is_empty => texts.push(vec![]),
            Err(e) => {
                ctx.stderr.write_all(format!("diff: {name}: {}\n", reason(&e)).as_bytes()).await?;
                return Ok(2);
            }
        }
    }
    let binary = |t: &[u8]| t[..t.len().min(8192)].contains(&0);
    let differ = texts[0] != texts[1] && (binary(&texts[0]) || binary(&texts[1]));
    let (old, new) = (lines(&texts[0]), lines(&texts[1]));
    let keys = |l: &[&[u8]]| l.iter().map(|l| o.key(l)).collect::<Vec<_>>();
    let mut ops = if texts[0] == texts[1] { vec![] } else { capture_diff_slices(Algorithm::Myers, &keys(&old), &keys(&new)) };
    if o.ignore_blank && ops.iter().filter(|op| !equal(op)).all(|op| old[op.old_range()].iter().chain(&new[op.new_range()]).all(|l| l.trim_ascii().is_empty())) {
        ops.clear();
    }
    if !differ && ops.iter().all(equal) {
        if o.same {
            ctx.stdout.write_all(format!("Files {a} and {b} are identical\n").as_bytes()).await?;
        }
        return Ok(0);
    }
    let mut out = vec![];
    if o.brief || differ {
        let kind = if o.brief { "Files" } else { "Binary files" };
        out.extend(format!("{kind} {a} and {b} differ\n").bytes());
    } else {
        if heading {
            out.extend(format!("diff{} {a} {b}\n", o.given).bytes());
        }
        match o.context {
            Some(n) => {
                for (i, (mark, name)) in [("---", a), ("+++", b)].into_iter().enumerate() {
                    let line = match o.labels.get(i) {
                        Some(label) => format!("{mark} {label}\n"),
                        None => format!("{mark} {name}\t{}\n", modified(ctx, name).await),
                    };
                    out.extend(line.bytes());
                }
                unified(&mut out, &old, &new, ops, n);
            }
            None => normal(&mut out, &old, &new, &ops),
        }
    }
    ctx.stdout.write_all(&out).await?;
    Ok(1)
}

fn equal(op: &DiffOp) -> bool {
    matches!(op, DiffOp::Equal { .. })
}

impl Options {
    /// What of a line is compared.
    fn key(&self, line: &[u8]) -> Vec<u8> {
        let mut key = line.to_vec();
        if self.ignore_case {
            key.make_ascii_lowercase();
        }
        if self.ignore_space {
            key.retain(|b| !b.is_ascii_whitespace());
        } else if self.ignore_space_change {
            key = key.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(&b' ');
            if line.first().is_some_and(u8::is_ascii_whitespace) {
                key.insert(0, b' ');
            }
        }
        key
    }
}

async fn modified(ctx: &CommandContext<'_>, name: &str) -> String {
    let clock = bashkit::Date::new();
    let (seconds, nanos) = match ctx.fs.stat(&ctx.cwd.join(name)).await {
        Ok(m) if name != "-" => m.modified.duration_since(std::time::UNIX_EPOCH).map_or((0, 0), |d| (d.as_secs() as i64, d.subsec_nanos())),
        _ => clock.now_epoch(),
    };
    let at = |format| clock.strftime(ctx.env.get("TZ"), Some(seconds), format).unwrap_or_default();
    format!("{}.{nanos:09} {}", at("%Y-%m-%d %H:%M:%S"), at("%z"))
}

/// The lines of a text, each with its newline.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|b| *b == b'\n').collect()
}

fn print(out: &mut Vec<u8>, mark: &str, line: &[u8]) {
    out.extend(mark.bytes());
    out.extend(line);
    if line.last() != Some(&b'\n') {
        out.extend(b"\n\\ No newline at end of file\n");
    }
}

fn normal(out: &mut Vec<u8>, old: &[&[u8]], new: &[&[u8]], ops: &[DiffOp]) {
    let range = |r: &std::ops::Range<usize>| match r.len() {
        0 => r.start.to_string(),
        1 => (r.start + 1).to_string(),
        _ => format!("{},{}", r.start + 1, r.end),
    };
    for op in ops.iter().filter(|op| !equal(op)) {
        let (a, b) = (op.old_range(), op.new_range());
        let letter = if a.is_empty() { 'a' } else if b.is_empty() { 'd' } else { 'c' };
        out.extend(format!("{}{letter}{}\n", range(&a), range(&b)).bytes());
        old[a].iter().for_each(|l| print(out, "< ", l));
        if letter == 'c' {
            out.extend(b"---\n");
        }
        new[b].iter().for_each(|l| print(out, "> ", l));
    }
}

fn unified(out: &mut Vec<u8>, old: &[&[u8]], new: &[&[u8]], ops: Vec<DiffOp>, context: usize) {
    let range = |start: usize, len: usize| match len {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        _ => format!("{},{len}", start + 1),
    };
    for group in group_diff_ops(ops, context) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (a, b) = (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
        out.extend(format!("@@ -{} +{} @@\n", range(a.start, a.len()), range(b.start, b.len())).bytes());
        for op in &group {
            if equal(op) {
                old[op.old_range()].iter().for_each(|l| print(out, " ", l));
                continue;
            }
            old[op.old_range()].iter().for_each(|l| print(out, "-", l));
            new[op.new_range()].iter().for_each(|l| print(out, "+", l));
        }
    }
}
