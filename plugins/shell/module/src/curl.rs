//! curl and wget, with the options that scripts use, over the host's requests. What the host
//! does by itself is accepted and ignored: TLS, redirects to allowed addresses, names, proxies.

use crate::commands::{input, read, reason};
use crate::http::{Answer, Failure, Request, send};
use bashkit::{Command, CommandContext, CommandStatus, Result, async_trait};
use std::collections::VecDeque;

pub struct Curl;
pub struct Wget;

#[derive(Default)]
struct Options {
    method: Option<String>,
    urls: Vec<String>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    form: Vec<Vec<u8>>,
    to_query: bool,
    head_only: bool,
    include: bool,
    outputs: VecDeque<Option<String>>, // None: the name of the address
    folder: Option<String>,
    headers_to: Option<String>,
    write_out: Option<String>,
    silent: bool,
    show_error: bool,
    fail: bool,
    fail_with_body: bool,
    timeout_ms: Option<u64>,
    follow: bool,
    retries: u32,
    spider: bool,
}

const BOUNDARY: &str = "------------------------b1946ac92492d2347c6235b4d2611184";

/// Options of curl with a value that changes nothing here.
const IGNORED_VALUES: [&str; 16] = [
    "connect-timeout", "proxy", "cacert", "capath", "cert", "key", "resolve", "max-redirs", "retry-delay", "retry-max-time", "limit-rate",
    "interface", "noproxy", "ciphers", "keepalive-time", "proto",
];
const IGNORED: [&str; 23] = [
    "insecure", "compressed", "globoff", "ipv4", "ipv6", "no-buffer", "no-progress-meter", "progress-bar", "http1.1", "http1.0", "http2", "tlsv1.2",
    "tlsv1.3", "retry-connrefused", "retry-all-errors", "location-trusted", "path-as-is", "create-dirs", "disable", "no-keepalive", "verbose", "raw", "parallel",
];

fn long_name(letter: char) -> Option<&'static str> {
    Some(match letter {
        'X' => "request",
        'H' => "header",
        'd' => "data",
        'F' => "form",
        'G' => "get",
        'I' => "head",
        'i' => "include",
        'o' => "output",
        'O' => "remote-name",
        'D' => "dump-header",
        'w' => "write-out",
        's' => "silent",
        'S' => "show-error",
        'f' => "fail",
        'm' => "max-time",
        'L' => "location",
        'u' => "user",
        'A' => "user-agent",
        'e' => "referer",
        'b' => "cookie",
        'T' => "upload-file",
        'k' => "insecure",
        'g' => "globoff",
        'v' => "verbose",
        'N' => "no-buffer",
        '#' => "progress-bar",
        'q' => "disable",
        '4' => "ipv4",
        '6' => "ipv6",
        'x' => "proxy",
        'E' => "cert",
        'J' => "remote-header-name",
        _ => return None,
    })
}

fn takes_value(name: &str) -> bool {
    IGNORED_VALUES.contains(&name)
        || name.starts_with("data")
        || matches!(
            name,
            "request" | "header" | "json" | "form" | "form-string" | "url-query" | "output" | "output-dir" | "dump-header" | "write-out" | "max-time" | "user" | "oauth2-bearer" | "user-agent" | "referer" | "cookie" | "cookie-jar" | "upload-file" | "url" | "retry"
        )
}

#[async_trait]
impl Command for Curl {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let mut o = Options::default();
        if let Err((code, message)) = parse(&ctx, &mut o).await? {
            return end(&ctx, code, &format!("curl: {message}\n")).await;
        }
        if o.urls.is_empty() {
            return end(&ctx, 2, "curl: (2) no URL specified\n").await;
        }
        let mut code = 0;
        for url in std::mem::take(&mut o.urls) {
            code = fetch(&ctx, &mut o, url).await?;
        }
        Ok(CommandStatus::with_code(code))
    }
}

async fn end(ctx: &CommandContext<'_>, code: i32, message: &str) -> Result<CommandStatus> {
    ctx.stderr.write_all(message.as_bytes()).await?;
    Ok(CommandStatus::with_code(code))
}

type Refused = (i32, String);

async fn parse(ctx: &CommandContext<'_>, o: &mut Options) -> Result<std::result::Result<(), Refused>> {
    let mut args = ctx.args.iter().cloned();
    while let Some(arg) = args.next() {
        let mut found: Vec<(String, Option<String>)> = vec![];
        if let Some(name) = arg.strip_prefix("--") {
            found.push((name.to_string(), None));
        } else if arg.len() > 1 && arg.starts_with('-') {
            for (at, letter) in arg.char_indices().skip(1) {
                let Some(name) = long_name(letter) else {
                    return Ok(Err((2, format!("option -{letter}: is unknown"))));
                };
                let rest = &arg[at + letter.len_utf8()..];
                if takes_value(name) && !rest.is_empty() {
                    found.push((name.into(), Some(rest.into())));
                    break;
                }
                found.push((name.into(), None));
            }
        } else {
            o.urls.push(arg);
            continue;
        }
        for (name, value) in found {
            let value = match value {
                None if takes_value(&name) => match args.next() {
                    None => return Ok(Err((2, format!("option --{name}: requires parameter")))),
                    v => v,
                },
                v => v,
            };
            if let Err(refused) = option(ctx, o, &name, value.unwrap_or_default()).await? {
                return Ok(Err(refused));
            }
        }
    }
    Ok(Ok(()))
}

async fn option(ctx: &CommandContext<'_>, o: &mut Options, name: &str, value: String) -> Result<std::result::Result<(), Refused>> {
    let unreadable = |file: &str| (26, format!("(26) Failed to open/read local data from file/application: {file}"));
    match name {
        "request" => o.method = Some(value),
        "header" => header(o, &value),
        "url" => o.urls.push(value),
        "data" | "data-ascii" | "data-raw" | "data-binary" | "data-urlencode" | "json" => {
            let mut part = match value.strip_prefix('@') {
                Some(file) if name != "data-raw" && name != "data-urlencode" => match read(ctx, file).await {
                    Ok(mut b) => {
                        if name == "data" || name == "data-ascii" {
                            b.retain(|c| !b"\r\n\0".contains(c));
                        }
                        b
                    }
                    Err(_) => return Ok(Err(unreadable(file))),
                },
                _ => value.clone().into_bytes(),
            };
            if name == "data-urlencode" {
                let (key, text) = match (value.find('='), value.find('@')) {
                    (Some(i), at) if at.is_none_or(|at| i < at) => (value[..i].to_string(), value[i + 1..].as_bytes().to_vec()),
                    (_, Some(i)) => match read(ctx, &value[i + 1..]).await {
                        Ok(b) => (value[..i].to_string(), b),
                        Err(_) => return Ok(Err(unreadable(&value[i + 1..]))),
                    },
                    _ => (String::new(), value.as_bytes().to_vec()),
                };
                part = if key.is_empty() { escape(&text).into_bytes() } else { format!("{key}={}", escape(&text)).into_bytes() };
            }
            if name == "json" {
                default_header(o, "Content-Type", "application/json");
                default_header(o, "Accept", "application/json");
            }
            match &mut o.body {
                Some(body) => {
                    if name != "json" {
                        body.push(b'&');
                    }
                    body.extend(part);
                }
                None => o.body = Some(part),
            }
        }
        "form" | "form-string" => {
            let (key, text) = value.split_once('=').unwrap_or((&value, ""));
            let (text, kind) = text.split_once(";type=").map_or((text, None), |(t, k)| (t, Some(k)));
            let mut part = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{key}\"").into_bytes();
            let content = match text.strip_prefix('@').or_else(|| text.strip_prefix('<')).filter(|_| name == "form") {
                Some(file) => {
                    let file = file.split(";filename=").next().unwrap_or(file);
                    if text.starts_with('@') {
                        part.extend(format!("; filename=\"{}\"\r\nContent-Type: {}", last_part(file), kind.unwrap_or("application/octet-stream")).bytes());
                    }
                    match read(ctx, file).await {
                        Ok(b) => b,
                        Err(_) => return Ok(Err(unreadable(file))),
                    }
                }
                None => text.as_bytes().to_vec(),
            };
            part.extend(b"\r\n\r\n");
            part.extend(content);
            part.extend(b"\r\n");
            o.form.push(part);
        }
        "upload-file" => {
            o.body = match read(ctx, &value).await {
                Ok(b) => Some(b),
                Err(_) => return Ok(Err(unreadable(&value))),
            };
            o.method.get_or_insert("PUT".into());
            default_header(o, "Content-Type", "application/octet-stream");
        }
        "get" => o.to_query = true,
        "url-query" => return Ok(Err((2, "option --url-query: use -G with --data-urlencode".into()))),
        "head" => o.head_only = true,
        "include" => o.include = true,
        "output" => o.outputs.push_back(Some(value)),
        "output-dir" => o.folder = Some(value),
        "remote-name" => o.outputs.push_back(None),
        "remote-header-name" | "remote-name-all" => {}
        "dump-header" => o.headers_to = Some(value),
        "write-out" => {
            o.write_out = Some(match value.strip_prefix('@') {
                Some(file) => String::from_utf8_lossy(&read(ctx, file).await.unwrap_or_default()).into_owned(),
                None => value,
            })
        }
        "silent" => o.silent = true,
        "no-silent" => o.silent = false,
        "show-error" => o.show_error = true,
        "fail" => o.fail = true,
        "fail-with-body" => (o.fail, o.fail_with_body) = (true, true),
        "fail-early" => {}
        "max-time" => o.timeout_ms = value.parse::<f64>().ok().filter(|s| *s > 0.0).map(|s| (s * 1000.0) as u64),
        "location" => o.follow = true,
        "retry" => o.retries = value.parse().unwrap_or(0).min(10),
        "user" => header(o, &format!("Authorization: Basic {}", base64(value.as_bytes()))),
        "oauth2-bearer" => header(o, &format!("Authorization: Bearer {value}")),
        "user-agent" => header(o, &format!("User-Agent: {value}")),
        "referer" => header(o, &format!("Referer: {value}")),
        "cookie" if value.contains('=') => header(o, &format!("Cookie: {value}")),
        "cookie" | "cookie-jar" => {}
        _ if IGNORED.contains(&name) || IGNORED_VALUES.contains(&name) => {}
        _ => return Ok(Err((2, format!("option --{name}: is unknown")))),
    }
    Ok(Ok(()))
}

fn header(o: &mut Options, line: &str) {
    let Some((name, value)) = line.split_once(':') else { return };
    o.headers.retain(|(k, _)| !k.eq_ignore_ascii_case(name));
    if !value.trim().is_empty() {
        o.headers.push((name.trim().into(), value.trim().into()));
    }
}

fn default_header(o: &mut Options, name: &str, value: &str) {
    if !o.headers.iter().any(|(k, _)| k.eq_ignore_ascii_case(name)) {
        o.headers.push((name.into(), value.into()));
    }
}

fn escape(text: &[u8]) -> String {
    text.iter().map(|b| if b.is_ascii_alphanumeric() || b"-._~".contains(b) { (*b as char).to_string() } else { format!("%{b:02X}") }).collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            text.push(if i <= chunk.len() { LETTERS[(n >> (18 - 6 * i)) as usize & 63] as char } else { '=' });
        }
    }
    text
}

/// The last part of a path or an address, without what follows the path.
fn last_part(name: &str) -> &str {
    let name = name.split(['?', '#']).next().unwrap_or(name);
    let path = name.split_once("://").map_or(name, |(_, rest)| rest.find('/').map_or("", |i| &rest[i..]));
    path.rsplit('/').next().unwrap_or("")
}

async fn fetch(ctx: &CommandContext<'_>, o: &mut Options, mut url: String) -> Result<i32> {
    if !url.contains("://") {
        url = format!("http://{url}");
    }
    url.truncate(url.find('#').unwrap_or(url.len()));
    let scheme_end = url.find("://").map_or(0, |i| i + 3);
    let rest_end = url[scheme_end..].find(['/', '?']).map_or(url.len(), |i| scheme_end + i);
    if let Some(at) = url[scheme_end..rest_end].find('@') {
        let user = url[scheme_end..scheme_end + at].to_string();
        url.replace_range(scheme_end..=scheme_end + at, "");
        header(o, &format!("Authorization: Basic {}", base64(user.as_bytes())));
    }
    let mut body = o.body.clone().unwrap_or_default();
    if o.to_query && !body.is_empty() {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&String::from_utf8_lossy(&std::mem::take(&mut body)));
    } else if !o.form.is_empty() {
        body = o.form.concat();
        body.extend(format!("--{BOUNDARY}--\r\n").bytes());
        default_header(o, "Content-Type", &format!("multipart/form-data; boundary={BOUNDARY}"));
    } else if o.body.is_some() && !o.to_query {
        default_header(o, "Content-Type", "application/x-www-form-urlencoded");
    }
    let sends = (o.body.is_some() && !o.to_query) || !o.form.is_empty();
    default_header(o, "User-Agent", "curl/8.0");
    default_header(o, "Accept", "*/*");
    let method = o.method.clone().unwrap_or_else(|| if o.head_only { "HEAD" } else if sends { "POST" } else { "GET" }.into());
    let request = Request { method, url: url.clone(), headers: o.headers.clone(), body, timeout_ms: o.timeout_ms };
    let ask = || match url.bytes().any(|b| b <= b' ' || b == 127) {
        true => Err(Failure { code: "INVALID_ARGUMENT".into(), message: "URL using bad/illegal format or missing URL".into() }),
        false => send(&request),
    };
    let mut answer = ask();
    for again in 0..o.retries {
        if !matches!(&answer, Ok(a) if matches!(a.status, 408 | 429 | 500 | 502 | 503 | 504)) && !matches!(&answer, Err(e) if e.code == "TIMEOUT" || e.code == "TOOL_INVOCATION_ERROR") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1 << again.min(5))).await;
        answer = ask();
    }
    let quiet = o.silent && !o.show_error;
    let answer = match answer.and_then(|mut a| match a.decoded() {
        Ok(()) => Ok(a),
        Err(e) => Err(Failure { code: String::new(), message: e.to_string() }),
    }) {
        Ok(a) => a,
        Err(e) => {
            let code = match e.code.as_str() {
                "TIMEOUT" => 28,
                "INVALID_ARGUMENT" => 3,
                "PAYLOAD_TOO_LARGE" => 63,
                _ => 7,
            };
            if let Some(format) = &o.write_out {
                let none = Answer { status: 0, url: url.clone(), headers: vec![], body: vec![] };
                ctx.stdout.write_all(write_out(format, &none, &url, &request.method).as_bytes()).await?;
            }
            if !quiet {
                ctx.stderr.write_all(format!("curl: ({code}) {}\n", e.message).as_bytes()).await?;
            }
            return Ok(code);
        }
    };
    let failed = o.fail && answer.status >= 400;
    let mut head = format!("HTTP/1.1 {} \r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut output = vec![];
    if o.include || o.head_only {
        output.extend(head.bytes());
    }
    if !o.head_only && (!failed || o.fail_with_body) {
        output.append(&mut answer.body.clone());
    }
    if let Some(name) = &o.headers_to {
        match name.as_str() {
            "-" => ctx.stdout.write_all(head.as_bytes()).await?,
            name => ctx.fs.write_file(&ctx.cwd.join(name), head.as_bytes()).await?,
        }
    }
    let name = match o.outputs.pop_front() {
        None => "-".into(),
        Some(Some(name)) => name,
        Some(None) => last_part(&url).to_string(),
    };
    let mut code = if failed { 22 } else { 0 };
    match name.as_str() {
        "" => {
            code = 23;
            ctx.stderr.write_all(b"curl: (23) Remote file name has no length\n").await?;
        }
        "-" => ctx.stdout.write_all(&output).await?,
        "/dev/null" => {}
        name => {
            let path = o.folder.as_ref().map_or_else(|| ctx.cwd.join(name), |f| ctx.cwd.join(f).join(name));
            if let Err(e) = ctx.fs.write_file(&path, &output).await {
                code = 23;
                ctx.stderr.write_all(format!("curl: (23) Failure writing output to destination: {}\n", reason(&e)).as_bytes()).await?;
            }
        }
    }
    if failed && !quiet {
        ctx.stderr.write_all(format!("curl: (22) The requested URL returned error: {}\n", answer.status).as_bytes()).await?;
    }
    if let Some(format) = &o.write_out {
        ctx.stdout.write_all(write_out(format, &answer, &url, &request.method).as_bytes()).await?;
    }
    Ok(code)
}

fn write_out(format: &str, a: &Answer, url: &str, method: &str) -> String {
    let mut out = String::new();
    let mut rest = format;
    while let Some(c) = rest.chars().next() {
        if let Some((name, after)) = rest.strip_prefix("%{").and_then(|r| r.split_once('}')) {
            let header = |name: &str| a.headers.iter().find(|(k, _)| k == name).map_or(String::new(), |(_, v)| v.clone());
            out.push_str(&match name {
                "http_code" | "response_code" => format!("{:03}", a.status),
                "url_effective" => a.url.clone(),
                "url" => url.into(),
                "method" => method.into(),
                "content_type" => header("content-type"),
                "redirect_url" => header("location"),
                "size_download" => a.body.len().to_string(),
                "num_redirects" => u8::from(a.url != url).to_string(),
                "exitcode" => "0".into(),
                n if n.starts_with("time_") => "0.000000".into(),
                _ => String::new(),
            });
            rest = after;
            continue;
        }
        let escaped = ["\\n", "\\r", "\\t", "%%", "\\\\"].iter().position(|e| rest.starts_with(e));
        match escaped {
            Some(i) => {
                out.push(['\n', '\r', '\t', '%', '\\'][i]);
                rest = &rest[2..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

#[async_trait]
impl Command for Wget {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let mut o = Options { silent: true, show_error: true, fail: true, follow: true, ..Options::default() };
        let (mut output, mut quiet, mut urls, mut no_clobber) = (None, false, vec![], false);
        let mut args = ctx.args.iter().cloned();
        while let Some(arg) = args.next() {
            let (name, mut value) = match arg.split_once('=') {
                Some((n, v)) if n.starts_with("--") => (n.to_string(), Some(v.to_string())),
                _ => (arg.clone(), None),
            };
            // "-qO-" is "-q -O -", and "-nv" one option.
            let mut letters: Vec<String> = vec![name.clone()];
            if !name.starts_with("--") && name.starts_with('-') && name.len() > 2 && !name.starts_with("-n") {
                letters.clear();
                for (at, c) in name.char_indices().skip(1) {
                    letters.push(format!("-{c}"));
                    if "OPTtUio".contains(c) {
                        let rest = &name[at + 1..];
                        value = (!rest.is_empty()).then(|| rest.to_string());
                        break;
                    }
                }
            }
            for name in letters {
                let mut given = || value.take().or_else(|| args.next()).unwrap_or_default();
                match name.as_str() {
                    "-O" | "--output-document" => output = Some(given()),
                    "-P" | "--directory-prefix" => o.folder = Some(given()),
                    "-q" | "--quiet" => quiet = true,
                    "-nc" | "--no-clobber" => no_clobber = true,
                    "-T" | "--timeout" | "--read-timeout" => o.timeout_ms = given().parse::<f64>().ok().map(|s| (s * 1000.0) as u64),
                    "-t" | "--tries" => o.retries = given().parse::<u32>().unwrap_or(1).saturating_sub(1).min(10),
                    "-U" | "--user-agent" => header(&mut o, &format!("User-Agent: {}", given())),
                    "--header" => header(&mut o, &given()),
                    "--method" => o.method = Some(given()),
                    "--post-data" | "--body-data" => o.body = Some(given().into_bytes()),
                    "--post-file" | "--body-file" => {
                        let file = given();
                        match read(&ctx, &file).await {
                            Ok(b) => o.body = Some(b),
                            Err(e) => return end(&ctx, 1, &format!("wget: {file}: {}\n", reason(&e))).await,
                        }
                    }
                    "-i" | "--input-file" => {
                        let file = given();
                        let list = if file == "-" { input(&ctx).await? } else { read(&ctx, &file).await? };
                        urls.extend(String::from_utf8_lossy(&list).split_whitespace().map(String::from));
                    }
                    "--spider" => (o.spider, o.head_only) = (true, true),
                    "-S" | "--server-response" => {}
                    "--waitretry" | "--connect-timeout" | "--dns-timeout" | "-o" | "--output-file" | "--max-redirect" => drop(given()),
                    "-nv" | "-v" | "--no-verbose" | "--verbose" | "--no-check-certificate" | "--content-disposition" | "-c" | "--continue" | "-N" | "--timestamping" | "--no-cache" | "-4" | "-6"
                    | "--https-only" | "--show-progress" | "--no-hsts" | "-e" | "-nd" => {}
                    n if n.starts_with('-') && n.len() > 1 => return end(&ctx, 2, &format!("wget: unrecognized option '{n}'\n")).await,
                    n => urls.push(n.to_string()),
                }
            }
        }
        if urls.is_empty() {
            return end(&ctx, 1, "wget: missing URL\n").await;
        }
        default_header(&mut o, "User-Agent", "Wget/1.21");
        o.show_error = !quiet;
        let mut code = 0;
        for url in urls {
            let name = output.clone().unwrap_or_else(|| Some(last_part(&url)).filter(|n| !n.is_empty()).unwrap_or("index.html").to_string());
            let path = o.folder.as_ref().map_or_else(|| ctx.cwd.join(&name), |f| ctx.cwd.join(f).join(&name));
            if no_clobber && name != "-" && ctx.fs.exists(&path).await? {
                continue;
            }
            o.outputs = VecDeque::from([Some(if o.spider { "/dev/null".into() } else { name })]);
            code = match fetch(&ctx, &mut o, url).await? {
                0 => code,
                22 => 8, // the server's answer is an error
                23 => 3,
                _ => 4,
            };
        }
        Ok(CommandStatus::with_code(code))
    }
}
