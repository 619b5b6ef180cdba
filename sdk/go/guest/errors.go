package guest

import (
	"fmt"
	"strings"
)

// The published codes that a skill may answer with. A code of the skill's own is
// answered by the host as INTERNAL, with the code in details.guest_code.
const (
	InvalidArgument     = "INVALID_ARGUMENT"
	ForbiddenPath       = "FORBIDDEN_PATH"
	NetworkDenied       = "NETWORK_DENIED"
	NotFound            = "NOT_FOUND"
	Conflict            = "CONFLICT"
	Internal            = "INTERNAL"
	ToolInvocationError = "TOOL_INVOCATION_ERROR"
)

// Error is why a call is not answered, in the words that its caller reads: what was
// wrong, and what is accepted. Any other error that a skill's function returns is
// INTERNAL for the caller, and its text goes to standard error.
type Error struct {
	Code    string
	Message string
	Details map[string]any // for programs; nil: none
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Errorf makes an Error without details.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid is an INVALID_ARGUMENT about one field of the input, as a.b or a[0]. Reason
// is a word for programs, such as missing, type or range.
func Invalid(field, reason, message string) *Error {
	return &Error{Code: InvalidArgument, Message: message, Details: map[string]any{"field": field, "reason": reason}}
}

func because(code, reason, message string) *Error {
	return &Error{Code: code, Message: message, Details: map[string]any{"reason": reason}}
}

func malformed() *Error {
	return because(InvalidArgument, "malformed", `standard input must be one JSON object in UTF-8: {"input": {…}}`)
}

func failed() *Error {
	return because(Internal, "failed", "the skill failed; its standard error says why")
}

// oneLine gives text as a line of a log: characters that end lines or command
// terminals become their escapes.
func oneLine(text string) string {
	breaks := func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, breaks) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if breaks(r) {
			_, _ = fmt.Fprintf(&b, `\u%04x`, r) // to memory
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// head is the first n characters of text.
func head(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
