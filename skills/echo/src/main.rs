//! The skill `echo`: gives the text of a call back, to prove that the way there
//! and back works. It answers exactly as `echo.py` does.

use serde_json::{json, Value};
use std::io::{self, Read, Write};
use std::process::ExitCode;

/// What is wrong with a call, in the words that its caller reads.
struct Fault {
    message: &'static str,
    field: Option<String>,
    reason: &'static str,
}

fn main() -> ExitCode {
    let mut call = Vec::new();
    let answer = match io::stdin().read_to_end(&mut call) {
        Ok(_) => run(&call),
        Err(_) => Err(malformed()),
    };
    let (envelope, code) = match answer {
        Ok(data) => (json!({"success": true, "data": data, "error": null}), 0),
        Err(fault) => {
            let mut details = json!({"reason": fault.reason});
            if let Some(field) = fault.field {
                details["field"] = Value::String(field);
            }
            let error = json!({"code": "INVALID_ARGUMENT", "message": fault.message, "details": details});
            (json!({"success": false, "data": null, "error": error}), 1)
        }
    };
    match writeln!(io::stdout(), "{envelope}") {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::from(1),
    }
}

fn run(call: &[u8]) -> Result<Value, Fault> {
    let call: Value = serde_json::from_slice(call).map_err(|_| malformed())?;
    let call = call.as_object().ok_or_else(malformed)?;
    let input = match call.get("input") {
        None => return Err(fault("input", "missing", "input: required, an object")),
        Some(Value::Object(input)) => input,
        Some(_) => return Err(fault("input", "type", "input: must be an object")),
    };
    // serde_json keeps keys in order, so the first unknown one is the same in every form.
    if let Some(name) = input.keys().find(|name| *name != "text") {
        let field: String = name.chars().take(64).collect();
        return Err(fault(&field, "unknown", "unknown field; accepted: text"));
    }
    match input.get("text") {
        None => Err(fault("text", "missing", "text: required, a string")),
        Some(Value::String(text)) => Ok(json!({ "echoed": text })),
        Some(_) => Err(fault("text", "type", "text: must be a string")),
    }
}

fn fault(field: &str, reason: &'static str, message: &'static str) -> Fault {
    Fault { message, field: Some(field.to_owned()), reason }
}

fn malformed() -> Fault {
    Fault {
        message: "standard input must be one JSON object in UTF-8: {\"input\": {…}}",
        field: None,
        reason: "malformed",
    }
}
