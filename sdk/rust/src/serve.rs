//! From standard input to standard output.

use crate::call::{one_line, Call};
use crate::errors::{codes, Failure};
use crate::files::ROOT;
use crate::numbers::no_number;
use crate::read::read_call;
use crate::typed::typed;
use serde::{de::DeserializeOwned, Serialize};
use serde_json::{json, Value};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Once;

/// Reads the call from standard input, has `run` answer it, prints the answer and gives
/// the exit code: 0 for success, 1 for an error.
pub fn serve<I, O>(run: impl Fn(&Call, I) -> Result<O, Failure>) -> ExitCode
where
    I: DeserializeOwned,
    O: Serialize,
{
    answer_panics();
    let mut given = Vec::new();
    // What cannot be read is no JSON.
    let _ = io::stdin().lock().read_to_end(&mut given);
    let call = Call::new(Some(ROOT.into()), Box::new(io::stderr()));
    let (code, text) = answer(&given, call, run);
    ANSWERED.store(true, Ordering::SeqCst);
    let mut out = io::stdout();
    match out.write_all(&text).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::from(1),
    }
}

/// Has `run` answer an input that nobody sent, and throws the answer away. Before
/// [`serve`], a host does it once for all calls of a skill, and each of them finds made
/// what is made at a first use. The call has no files, and `run` must not depend on time
/// or chance in it, nor panic.
pub fn rehearse<I, O>(run: impl Fn(&Call, I) -> Result<O, Failure>, sample: Value)
where
    I: DeserializeOwned,
    O: Serialize,
{
    answer_panics();
    let given = json!({ "input": sample }).to_string();
    let _ = answer(given.as_bytes(), Call::new(None, Box::new(io::sink())), run);
}

/// What a skill leaves behind.
#[derive(Debug)]
pub struct Answer {
    pub exit: u8,
    pub stdout: String,
    pub stderr: String,
}

/// [`serve`] for tests: takes what comes on standard input, and the folder that has data
/// and work, None where neither is granted. Panics are the test's own.
pub fn serve_on<I, O>(given: &[u8], root: Option<&Path>, run: impl Fn(&Call, I) -> Result<O, Failure>) -> Answer
where
    I: DeserializeOwned,
    O: Serialize,
{
    let logs = Kept::default();
    let call = Call::new(root.map(Path::to_owned), Box::new(logs.clone()));
    let (exit, stdout) = answer(given, call, run);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let stderr = text(&logs.0.borrow());
    Answer { exit, stdout: text(&stdout), stderr }
}

#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The exit code, and what is printed.
fn answer<I, O>(given: &[u8], mut call: Call, run: impl Fn(&Call, I) -> Result<O, Failure>) -> (u8, Vec<u8>)
where
    I: DeserializeOwned,
    O: Serialize,
{
    let data = read_call(given).and_then(|given| {
        call.skill_id = given.skill_id;
        call.trace_id = given.trace_id;
        let input: I = typed(given.input, "")?;
        data(&run(&call, input)?)
    });
    match data {
        Ok(data) => (0, [&b"{\"success\":true,\"data\":"[..], &data, b",\"error\":null}\n"].concat()),
        Err(failure) => {
            if let Some(cause) = &failure.cause {
                call.error(&format!("uncaught: {cause}"));
            }
            (1, refusal(&failure))
        }
    }
}

/// The data of an answer as JSON.
fn data<O: Serialize>(data: &O) -> Result<Vec<u8>, Failure> {
    if let Some(field) = no_number(data, "data") {
        let message = format!("{field}: NaN and infinite numbers are no JSON");
        return Err(Failure::new(codes::INTERNAL, message).with(json!({ "field": field, "reason": "number" })));
    }
    let json = serde_json::to_vec(data)?;
    if json.first() != Some(&b'{') {
        let details = json!({ "field": "data", "reason": "type" });
        return Err(Failure::new(codes::INTERNAL, "data: must be an object").with(details));
    }
    Ok(json)
}

fn refusal(failure: &Failure) -> Vec<u8> {
    let mut error = json!({ "code": failure.code, "message": failure.message });
    if let Some(details) = &failure.details {
        error["details"] = details.clone();
    }
    format!("{}\n", json!({ "success": false, "data": null, "error": error })).into_bytes()
}

/// The answer was printed, or is about to be.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Has panics be answered. In a hook, because nothing can be caught in WebAssembly.
fn answer_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
                (Some(text), _) => text,
                (_, Some(text)) => text.as_str(),
                _ => "a panic",
            };
            let _ = writeln!(io::stderr(), "ERROR uncaught: {}", one_line(text));
            told(info);
            if !ANSWERED.swap(true, Ordering::SeqCst) {
                let mut out = io::stdout();
                let _ = out.write_all(&refusal(&Failure::failed(String::new()))).and_then(|()| out.flush());
            }
            std::process::exit(1);
        }));
    });
}
