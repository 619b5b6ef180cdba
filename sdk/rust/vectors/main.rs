//! The vector skill in Rust: what the calls in sdk/vectorstest ask for, by the SDK alone.

use openskill_guest::{json, serve, Call, Failure, Level, Value};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// The arguments of all operations.
#[derive(Deserialize)]
struct Input {
    op: String,
    item: Option<Item>,
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Value,
    #[serde(default)]
    path: String,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    files: Vec<File>,
    #[serde(default)]
    value: Value,
}

/// A field of each kind.
#[derive(Deserialize, Serialize)]
struct Item {
    name: String,
    count: i64,
    ratio: f64,
    on: bool,
    tags: Vec<String>,
    note: Option<String>,
}

#[derive(Deserialize)]
struct File {
    name: String,
    text: String,
}

fn run(call: &Call, input: Input) -> Result<Value, Failure> {
    match input.op.as_str() {
        "echo" => Ok(json!({ "item": input.item, "skill_id": call.skill_id, "trace_id": call.trace_id })),
        "fail" => Err(Failure::new(input.code, input.message).with(input.details)),
        "panic" => {
            call.info("about to fail");
            panic!("{}", input.message);
        }
        "read" => {
            let text = call.read_data(&input.path)?;
            Ok(json!({ "text": String::from_utf8_lossy(&text), "bytes": text.len() }))
        }
        "probe" => {
            let errors: Vec<Value> = input.paths.iter().map(|path| refused(call.read_data(path))).collect();
            Ok(json!({ "errors": errors }))
        }
        "write" => Ok(write(call, &input.files)),
        "value" => Ok(json!({ "value": input.value })),
        _ => {
            let message = "op: must be one of echo, fail, panic, read, probe, write, value";
            Err(Failure::invalid("op", "unsupported", message))
        }
    }
}

fn write(call: &Call, files: &[File]) -> Value {
    call.log(Level::Debug, "writing", json!({ "files": files.len() }));
    call.info("größe 😀");
    call.warn("two\nlines");
    let mut errors = Vec::new();
    for file in files {
        let error = refused(call.write_artifact(&file.name, &file.text));
        if !error.is_null() {
            call.log(Level::Error, "refused", json!({ "name": file.name, "why": null }));
        }
        errors.push(error);
    }
    json!({ "errors": errors })
}

fn refused<T>(result: Result<T, Failure>) -> Value {
    match result {
        Ok(_) => Value::Null,
        Err(failure) => json!({ "code": failure.code, "message": failure.message }),
    }
}

fn main() -> ExitCode {
    serve(run)
}
