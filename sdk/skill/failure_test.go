package skill

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What went wrong within the host is for its log; callers are told the code alone.
func TestInternalErrorsAreNotShown(t *testing.T) {
	secret := "/srv/openskill/state: connection to 10.0.0.7 refused"
	inner := &Error{Op: "store.Open", Code: Internal, Message: secret, Details: map[string]any{"path": secret}}
	for what, err := range map[string]error{
		"plain": errors.New(secret), "internal": inner, "wrapped": fmt.Errorf("store: %w", inner),
		"a cause": &Error{Code: NotFound, Message: "there is no such skill", Err: errors.New(secret)},
	} {
		r := Failure("echo", "t-1", Meta{}, err)
		if shown := fmt.Sprintf("%+v", *r.Error); strings.Contains(shown, "10.0.0.7") || r.Error.Message == "" {
			t.Errorf("%s: %s", what, shown)
		}
	}
}
