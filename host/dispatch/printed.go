package dispatch

import (
	"unicode/utf8"

	"openskill/sdk/skill"
)

// maxPartial is how many bytes of the output of an ended run an error keeps. It is below
// the least that a model is shown of a result.
const maxPartial = 8 << 10

// endedWith is an error of the host's about a run, with the beginning of what the guest
// printed before it in error.details.
func endedWith(code skill.Code, message string, stdout []byte) *skill.Error {
	e := &skill.Error{Op: "dispatch.read", Code: code, Message: message}
	if len(stdout) == 0 {
		return e
	}
	e.Details = skill.OutputFields(beginning(stdout))
	e.Details["output_bytes"] = len(stdout)
	return e
}

// beginning cuts what a guest printed to maxPartial, between two characters where it is
// text: a limit of the run may have cut it within one.
func beginning(b []byte) []byte {
	b = b[:min(len(b), maxPartial)]
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if last := b[len(b)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) && utf8.Valid(b[:len(b)-i]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
