//! A skill's own side of openSkill's contract: one call in, one answer out.
//!
//! ```no_run
//! use openskill_guest::{serve, Call, Failure};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize)]
//! struct Input { name: String, times: Option<u32> }
//!
//! #[derive(Serialize)]
//! struct Output { greeting: String }
//!
//! fn greet(_call: &Call, input: Input) -> Result<Output, Failure> {
//!     let greeting = format!("Hello, {}!", input.name).repeat(input.times.unwrap_or(1) as usize);
//!     Ok(Output { greeting })
//! }
//!
//! fn main() -> std::process::ExitCode { serve(greet) }
//! ```
//!
//! What is wrong with an input is answered as INVALID_ARGUMENT that names the field.
//! A panic, of any thread, is answered as INTERNAL and ends the program: WebAssembly has
//! no unwinding. Do not print to standard output, which holds the answer and nothing else.

mod call;
mod errors;
mod files;
mod numbers;
mod read;
mod serve;
mod typed;

pub use call::{Call, Level};
pub use errors::{codes, Failure};
pub use serde_json::{json, Value};
pub use serve::{rehearse, serve, serve_on, Answer};
pub use typed::typed;
