//! The commands that differ from bashkit's.

use bashkit::{BashBuilder, Command, CommandContext, CommandStatus, Result, async_trait};
use std::io::Read;

pub fn add(builder: BashBuilder) -> BashBuilder {
    builder
        .command("yes", Yes)
        .command("zcat", Zcat)
        .command("wc", crate::filters::Wc)
        .command("tee", crate::filters::Tee)
        .command("tr", crate::tr::Tr)
        .command("cut", crate::cut::Cut)
        .command("sqlite3", crate::programs::SQLITE)
        .command("zip", crate::programs::ARCHIVE)
        .command("unzip", crate::programs::ARCHIVE)
        .command("bc", crate::bc::Bc)
        .command("diff", crate::diff::Diff)
        .command("curl", crate::curl::Curl)
        .command("wget", crate::curl::Wget)
        .builtin("date", Box::new(crate::date::Date))
}

/// All of standard input.
pub async fn input(ctx: &CommandContext<'_>) -> Result<Vec<u8>> {
    let mut all = vec![];
    while let Some(chunk) = ctx.stdin.read_chunk().await? {
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}

/// The content of a file, or of standard input for "-".
pub async fn read(ctx: &CommandContext<'_>, name: &str) -> Result<Vec<u8>> {
    match name {
        "-" | "/dev/stdin" => input(ctx).await,
        _ => ctx.fs.read_file(&ctx.cwd.join(name)).await,
    }
}

/// What went wrong, as C programs say it.
pub fn reason(error: &bashkit::Error) -> String {
    match error {
        bashkit::Error::Io(e) if e.kind() == std::io::ErrorKind::NotFound => "No such file or directory".into(),
        bashkit::Error::Io(e) if e.to_string().contains("parent directory not found") => "No such file or directory".into(),
        bashkit::Error::Io(e) if e.to_string().contains("is a directory") => "Is a directory".into(),
        bashkit::Error::Io(e) => e.to_string(),
        e => e.to_string(),
    }
}

struct Yes;

#[async_trait]
impl Command for Yes {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let mut line = if ctx.args.is_empty() { "y".into() } else { ctx.args.join(" ") };
        line.push('\n');
        let chunk = line.repeat((4096 / line.len()).max(1));
        loop {
            ctx.stdout.write_all(chunk.as_bytes()).await?; // a reader that ends ends this
        }
    }
}

struct Zcat;

#[async_trait]
impl Command for Zcat {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let mut names: Vec<&str> = ctx.args.iter().map(String::as_str).filter(|a| *a == "-" || !a.starts_with('-')).collect();
        if names.is_empty() {
            names.push("-");
        }
        let mut code = 0;
        for name in names {
            let failed = match read(&ctx, name).await {
                Err(e) => Some(reason(&e)),
                Ok(packed) => {
                    let mut plain = vec![];
                    let end = flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut plain);
                    ctx.stdout.write_all(&plain).await?;
                    end.err().map(|_| "not in gzip format".to_string())
                }
            };
            if let Some(why) = failed {
                code = 1;
                ctx.stderr.write_all(format!("gzip: {name}: {why}\n").as_bytes()).await?;
            }
        }
        Ok(CommandStatus::with_code(code))
    }
}
