//! Processes through the host: the file /dev/process, and waiting for their pipes.

use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};

/// The answer to one request. A failure has "error" and "message".
pub fn ask(request: &Value) -> Value {
    let failed = |e: std::io::Error| json!({"error": "EIO", "message": e.to_string()});
    let talk = || {
        let mut host = std::fs::OpenOptions::new().read(true).write(true).open("/dev/process")?;
        host.write_all(request.to_string().as_bytes())?;
        let mut answer = vec![];
        host.read_to_end(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    match talk() {
        Ok(answer) => serde_json::from_slice(&answer).unwrap_or(Value::Null),
        Err(e) => failed(e),
    }
}

/// A descriptor that stays open.
pub fn borrowed(fd: RawFd) -> ManuallyDrop<File> {
    ManuallyDrop::new(unsafe { File::from_raw_fd(fd) })
}

/// What can be done with a descriptor without waiting.
#[derive(Clone, Copy, PartialEq)]
pub enum For {
    Reading,
    Writing,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Subscription {
    user: u64,
    kind: u64, // its first byte
    a: u64,    // the descriptor, or the clock
    timeout: u64,
    precision: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    user: u64,
    error: u16,
    kind: u8,
    bytes: u64,
    flags: u64,
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn poll_oneoff(subscriptions: *const Subscription, events: *mut Event, count: usize, happened: *mut usize) -> i32;
}

const CLOCK: u64 = 0;
const MONOTONIC: u64 = 1;

/// How many bytes can be read or written of each descriptor now; Some(0) of one to read is its
/// end, and of one to write that nobody reads it. None: it would wait. Where all would, it waits
/// until one would not, or the time has passed, and other processes run meanwhile.
pub fn ready(list: &[(RawFd, For)], nanoseconds: u64) -> Vec<Option<u64>> {
    let mut asked = vec![Subscription { user: u64::MAX, kind: CLOCK, a: MONOTONIC, timeout: nanoseconds, ..Default::default() }];
    for (i, (fd, what)) in list.iter().enumerate() {
        asked.push(Subscription { user: i as u64, kind: if *what == For::Reading { 1 } else { 2 }, a: *fd as u64, ..Default::default() });
    }
    let mut events = vec![Event::default(); asked.len()];
    let mut n = 0;
    let mut all = vec![None; list.len()];
    if unsafe { poll_oneoff(asked.as_ptr(), events.as_mut_ptr(), asked.len(), &mut n) } == 0 {
        for e in events.iter().take(n).filter(|e| e.user != u64::MAX) {
            all[e.user as usize] = Some(if e.error == 0 { e.bytes } else { 0 });
        }
    }
    all
}
