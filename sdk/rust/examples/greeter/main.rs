//! The skill greeter: it greets somebody by name.

use openskill_guest::{json, rehearse, serve, Call, Failure, Level};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// What a caller sends. Times may be left out.
#[derive(Deserialize)]
struct Input {
    name: String,
    times: Option<i64>,
}

/// What the caller gets.
#[derive(Serialize)]
struct Output {
    greeting: String,
}

fn greet(call: &Call, input: Input) -> Result<Output, Failure> {
    let name = input.name.trim();
    if name.is_empty() {
        return Err(Failure::invalid("name", "blank", "name: must not be blank"));
    }
    let times = input.times.unwrap_or(1);
    if !(1..=9).contains(&times) {
        return Err(Failure::invalid("times", "range", "times: must be from 1 to 9"));
    }
    call.log(Level::Info, "greeting", json!({ "times": times }));
    Ok(Output { greeting: vec![format!("Hello, {name}!"); times as usize].join(" ") })
}

fn main() -> ExitCode {
    rehearse(greet, json!({ "name": "nobody" }));
    serve(greet)
}
