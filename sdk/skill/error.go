package skill

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is the one error type that crosses a package boundary. Message is
// written for the person or model that must mend the call: what was wrong and
// what is accepted; it never holds a path of the host or text of a guest that
// was not cleaned with [CleanText]. Err is for logs only and is never shown.
type Error struct {
	Op      string         // the operation, as package.verb, for logs
	Code    Code           // never empty
	Subject string         // the skill, field or file it is about; may be empty
	Message string         // what a caller reads
	Details map[string]any // shown to the caller as error.details; may be nil
	Err     error          // the cause; may be nil
}

// Error gives the whole chain, for logs.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	b.WriteString(string(e.Code))
	if e.Subject != "" {
		b.WriteString(" " + e.Subject)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf is the code of the first *Error in err's chain, Internal for any other
// error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// MaxMessage is the length in bytes to which messages for callers are cut.
const MaxMessage = 400

// CleanText makes text that a guest or a stranger wrote fit to be shown: ends of lines
// become spaces, other control characters, bidirectional overrides and what else is
// [Hidden] vanish, but where they are part of what is seen ([Belongs]), invalid UTF-8 is
// replaced, and what is longer than most bytes is cut to that, with an ellipsis at its end.
func CleanText(s string, most int) string {
	var b strings.Builder
	cut := 0      // where there is room for the ellipsis
	full := false // but for spaces, which may be the last
	var before rune
	for i, r := range s {
		if r == '\n' || r == '\t' || r == '\r' {
			r = ' '
		}
		space := unicode.IsSpace(r)
		if Hidden(r) && !Belongs(before, r, s[i+utf8.RuneLen(r):]) || space && b.Len() == 0 {
			before = 0
			continue
		}
		before = r
		if full = full || b.Len()+utf8.RuneLen(r) > most; full {
			if space {
				continue
			}
			return strings.TrimSpace(b.String()[:cut]) + ellipsis
		}
		b.WriteRune(r)
		if b.Len()+len(ellipsis) <= most {
			cut = b.Len()
		}
	}
	return strings.TrimSpace(b.String())
}

const ellipsis = "…"
