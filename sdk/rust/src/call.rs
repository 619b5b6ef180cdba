use serde_json::Value;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

/// How much a line of the log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// What a skill's function is told of the call, and can do in it.
pub struct Call {
    pub skill_id: String,
    pub trace_id: String,
    /// Before data and work; None where there are no files.
    pub(crate) root: Option<PathBuf>,
    pub(crate) logs: RefCell<Box<dyn Write>>,
}

impl Call {
    pub(crate) fn new(root: Option<PathBuf>, logs: Box<dyn Write>) -> Call {
        Call { skill_id: String::new(), trace_id: String::new(), root, logs: RefCell::new(logs) }
    }

    pub fn debug(&self, message: &str) {
        self.log(Level::Debug, message, Value::Null);
    }

    pub fn info(&self, message: &str) {
        self.log(Level::Info, message, Value::Null);
    }

    pub fn warn(&self, message: &str) {
        self.log(Level::Warn, message, Value::Null);
    }

    /// Ends nothing: return a Failure for that.
    pub fn error(&self, message: &str) {
        self.log(Level::Error, message, Value::Null);
    }

    /// Writes a line to standard error, which operators may read: the level, the message,
    /// and the fields, an object, as JSON.
    pub fn log(&self, level: Level, message: &str, fields: Value) {
        let mut line = format!("{} {}", word(level), one_line(message));
        if !fields.is_null() {
            line.push(' ');
            line.push_str(&one_line(&fields.to_string()));
        }
        line.push('\n');
        // A log that is gone ends no call.
        if let Ok(mut logs) = self.logs.try_borrow_mut() {
            let _ = logs.write_all(line.as_bytes());
        }
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Debug => "DEBUG",
        Level::Info => "INFO",
        Level::Warn => "WARN",
        Level::Error => "ERROR",
    }
}

/// Text as a line of a log: what ends lines or commands terminals becomes escapes.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c < ' ' || ('\u{7f}'..'\u{a0}').contains(&c) || c == '\u{2028}' || c == '\u{2029}' {
            let _ = write!(line, "\\u{:04x}", c as u32); // to memory
        } else {
            line.push(c);
        }
    }
    line
}
