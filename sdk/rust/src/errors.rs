use serde_json::{json, Value};
use std::fmt;

/// The published codes that a skill may answer with. A code of the skill's own is answered
/// by the host as INTERNAL, with the code in `details.guest_code`.
pub mod codes {
    pub const INVALID_ARGUMENT: &str = "INVALID_ARGUMENT";
    pub const FORBIDDEN_PATH: &str = "FORBIDDEN_PATH";
    pub const NETWORK_DENIED: &str = "NETWORK_DENIED";
    pub const NOT_FOUND: &str = "NOT_FOUND";
    pub const CONFLICT: &str = "CONFLICT";
    pub const INTERNAL: &str = "INTERNAL";
    pub const TOOL_INVOCATION_ERROR: &str = "TOOL_INVOCATION_ERROR";
}

/// Why a call is not answered, in the words that its caller reads: what was wrong, and
/// what is accepted. Any other error becomes one by `?`: INTERNAL for the caller, with its
/// text on standard error.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub code: String,
    pub message: String,
    /// For programs: an object.
    pub details: Option<Value>,
    /// For operators, on standard error.
    pub(crate) cause: Option<String>,
}

impl Failure {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Failure {
        Failure { code: code.into(), message: message.into(), details: None, cause: None }
    }

    /// Adds details for programs.
    #[must_use]
    pub fn with(mut self, details: Value) -> Failure {
        self.details = Some(details);
        self
    }

    /// An INVALID_ARGUMENT about one field of the input, as a.b or a[0]. The reason is a
    /// word for programs, such as missing, type or range.
    pub fn invalid(field: &str, reason: &str, message: impl Into<String>) -> Failure {
        Failure::new(codes::INVALID_ARGUMENT, message).with(json!({ "field": field, "reason": reason }))
    }

    pub(crate) fn because(code: &str, reason: &str, message: &str) -> Failure {
        Failure::new(code, message).with(json!({ "reason": reason }))
    }

    pub(crate) fn failed(cause: String) -> Failure {
        let mut failure = Failure::because(codes::INTERNAL, "failed", "the skill failed; its standard error says why");
        failure.cause = Some(cause);
        failure
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// For this one Failure itself is no std::error::Error.
impl<E: std::error::Error> From<E> for Failure {
    fn from(err: E) -> Failure {
        Failure::failed(err.to_string())
    }
}
