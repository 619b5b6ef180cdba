"""Why a call is not answered, in the words that its caller reads."""

# The published codes that a skill may answer with. A code of the skill's own is
# answered by the host as INTERNAL, with the code in details.guest_code.
INVALID_ARGUMENT = "INVALID_ARGUMENT"
FORBIDDEN_PATH = "FORBIDDEN_PATH"
NETWORK_DENIED = "NETWORK_DENIED"
NOT_FOUND = "NOT_FOUND"
CONFLICT = "CONFLICT"
INTERNAL = "INTERNAL"
TOOL_INVOCATION_ERROR = "TOOL_INVOCATION_ERROR"


class Failure(Exception):
    """Raised by a skill: a code, what was wrong and what is accepted, and details for
    programs. Any other exception is INTERNAL for the caller, and its traceback goes to
    standard error."""

    def __init__(self, code, message, details=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


def invalid(field, reason, message):
    """An INVALID_ARGUMENT about one field of the input, as a.b or a[0]. The reason is a
    word for programs, such as missing, type or range."""
    return Failure(INVALID_ARGUMENT, message, {"field": field, "reason": reason})


def malformed():
    return Failure(
        INVALID_ARGUMENT,
        'standard input must be one JSON object in UTF-8: {"input": {…}}',
        {"reason": "malformed"},
    )


def no_json(path):
    """What an answer cannot hold."""
    return Failure(
        INTERNAL,
        path + ": NaN and infinite numbers are no JSON",
        {"field": path, "reason": "number"},
    )
