//! Requests through the host, which checks each against what the operator granted.

use serde_json::{Value, json};

#[link(wasm_import_module = "openskill_v1")]
unsafe extern "C" {
    fn http_request(request: *const u8, size: usize, answer_size: *mut usize) -> u32;
    fn http_read(buffer: *mut u8, size: usize, read: *mut usize) -> u32;
}

/// A request as the host takes it.
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub timeout_ms: Option<u64>,
}

/// An answer, whatever its status is.
pub struct Answer {
    pub status: u64,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A request that got no answer, with the host's code and message.
pub struct Failure {
    pub code: String,
    pub message: String,
}

pub fn send(r: &Request) -> Result<Answer, Failure> {
    let mut head = json!({"method": r.method, "url": r.url, "headers": r.headers.iter().cloned().map(|(k, v)| (k, Value::from(v))).collect::<serde_json::Map<_, _>>()});
    if let Some(ms) = r.timeout_ms {
        head["timeout_ms"] = ms.min(30_000).into();
    }
    let mut request = head.to_string().into_bytes();
    request.push(b'\n');
    request.extend_from_slice(&r.body);
    let failed = |message: String| Failure { code: "TOOL_INVOCATION_ERROR".into(), message };
    let mut size = 0;
    let errno = unsafe { http_request(request.as_ptr(), request.len(), &mut size) };
    if errno != 0 {
        return Err(failed(format!("the host refused the request (errno {errno})")));
    }
    let mut answer = vec![0; size];
    let mut n = 0;
    let errno = unsafe { http_read(answer.as_mut_ptr(), size, &mut n) };
    if errno != 0 || n != size {
        return Err(failed("the answer was cut".into()));
    }
    let line = answer.iter().position(|b| *b == b'\n').unwrap_or(answer.len());
    let head: Value = serde_json::from_slice(&answer[..line]).map_err(|e| failed(e.to_string()))?;
    let text = |v: &Value| v.as_str().unwrap_or_default().to_string();
    if !head["error"].is_null() {
        return Err(Failure { code: text(&head["error"]["code"]), message: text(&head["error"]["message"]) });
    }
    let mut headers = vec![];
    for (name, values) in head["headers"].as_object().into_iter().flatten() {
        headers.extend(values.as_array().into_iter().flatten().map(|v| (name.clone(), text(v))));
    }
    Ok(Answer {
        status: head["status"].as_u64().unwrap_or(0),
        url: text(&head["url"]),
        headers,
        body: answer.split_off((line + 1).min(answer.len())),
    })
}

impl Answer {
    /// The body without its compression, if it has one that is known here.
    pub fn decoded(&mut self) -> std::io::Result<()> {
        let encoding = self.headers.iter().find(|(k, _)| k == "content-encoding").map(|(_, v)| v.as_str());
        let mut plain = vec![];
        match encoding {
            Some("gzip") => std::io::copy(&mut flate2::read::MultiGzDecoder::new(&self.body[..]), &mut plain)?,
            Some("deflate") => std::io::copy(&mut flate2::read::ZlibDecoder::new(&self.body[..]), &mut plain)?,
            _ => return Ok(()),
        };
        self.body = plain;
        Ok(())
    }
}
