//! A process of a run: what it was started with, and what of the shell it is.

use serde_json::{Value, json};

pub struct Start {
    args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub dir: String,
    /// Standard input is inherited: others read it too.
    pub shares: bool,
}

/// What the shell executes.
pub struct Line {
    pub source: String,
    pub name: String, // $0
    pub args: Vec<String>,
    pub from_input: bool, // the source is standard input
}

impl Start {
    /// Asks the host.
    pub fn ask() -> Start {
        let told = crate::host::ask(&json!({"op": "self"}));
        let texts = |v: &Value| v.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(String::from)).collect::<Vec<_>>();
        Start {
            args: texts(&told["args"]),
            env: texts(&told["env"]).iter().filter_map(|e| e.split_once('=')).map(|(k, v)| (k.to_string(), v.to_string())).collect(),
            dir: told["dir"].as_str().filter(|d| !d.is_empty()).unwrap_or("/").to_string(),
            shares: told["stdin"] == "inherited",
        }
    }

    /// Reads the arguments as bash and as commands have them.
    pub fn line(&self) -> Result<Line, String> {
        let mut args = self.args.iter().cloned();
        let name = args.next().unwrap_or_default();
        let base = name.rsplit('/').next().unwrap_or_default().to_string();
        if base != "sh" && base != "bash" {
            return Ok(Line { source: "\"$0\" \"$@\"".into(), name: base, args: args.collect(), from_input: false });
        }
        let mut set = String::new();
        let mut args = args.peekable();
        while let Some(option) = args.next_if(|a| a.starts_with(['-', '+']) && a.len() > 1) {
            if option == "--" {
                break;
            }
            if option.starts_with("--") {
                continue; // --posix, --norc and the like change nothing here
            }
            if option.ends_with('o') || option.ends_with('O') {
                let value = args.next().ok_or(format!("{option}: option requires an argument"))?;
                let with = if option.ends_with('o') { "set" } else { "shopt" };
                let on = if with == "set" { &option[..1] } else if option.starts_with('-') { "-s" } else { "-u" };
                let on = if with == "set" { format!("{on}o") } else { on.to_string() };
                set.push_str(&format!("{with} {on} {}; ", quoted(&value)));
            }
            let letters: String = option[1..].chars().filter(|c| "abefhkmnptuvxBCEHPT".contains(*c)).collect();
            if !letters.is_empty() {
                set.push_str(&format!("set {}{letters}; ", &option[..1]));
            }
            if option[1..].contains('c') {
                let command = args.next().ok_or("-c: option requires an argument")?;
                let name = args.next().unwrap_or(base);
                return Ok(Line { source: set + &command, name, args: args.collect(), from_input: false });
            }
            if option[1..].contains('s') {
                return Ok(Line { source: String::new(), name: base, args: args.collect(), from_input: true });
            }
        }
        match args.next() {
            None => Ok(Line { source: set, name: base, args: vec![], from_input: true }),
            Some(script) if set.is_empty() => Ok(Line { source: "\"$0\" \"$@\"".into(), name: at(&script), args: args.collect(), from_input: false }),
            Some(script) => Ok(Line { source: set + "source \"$0\" \"$@\"", name: at(&script), args: args.collect(), from_input: false }),
        }
    }
}

/// A script by its path, not by the PATH.
fn at(script: &str) -> String {
    if script.contains('/') { script.into() } else { format!("./{script}") }
}

/// A word of the shell that is this text.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
