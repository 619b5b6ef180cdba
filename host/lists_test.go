package host

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"openskill/host/config"
	"openskill/sdk/skill"
)

// Lists are kept until the revision changes, and within a bound; those that were not used
// for longest go first.
func TestListsAreBounded(t *testing.T) {
	var l lists
	at := revision{settings: &config.Settings{}}
	l.keep("a", at, 1, mostKept/8)
	if v, ok := l.get("a", at); !ok || v != 1 {
		t.Errorf("%v %v", v, ok)
	}
	if _, ok := l.get("a", revision{settings: &config.Settings{}}); ok {
		t.Error("a list of another revision")
	}
	for i := range 100 {
		l.keep(fmt.Sprint(i), at, i, mostKept/10)
		if _, ok := l.get("a", at); !ok {
			t.Fatal("a list that is used is gone")
		}
		if l.bytes > mostKept {
			t.Fatalf("%d bytes are kept", l.bytes)
		}
	}
	if _, ok := l.get("0", at); ok {
		t.Error("one that is not used is kept")
	}
	l.keep("a", at, 2, mostKept/4)
	if _, ok := l.get("a", at); ok {
		t.Error("one that takes more than its part is kept")
	}
	for len(l.all) > 0 {
		for key := range l.all {
			l.drop(key)
		}
	}
	if l.bytes != 0 {
		t.Errorf("%d bytes of nothing", l.bytes)
	}
}

// A list is made once, again when something of it changes, and not for a caller that left.
func TestToolsAreMadeOnce(t *testing.T) {
	h, err := Open(settings(t, nil), &Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	p := skill.Local()
	first, err := h.Tools(t.Context(), p, "openai")
	if err != nil || len(first) == 0 {
		t.Fatal(err)
	}
	again, err := h.Tools(t.Context(), p, "openai")
	if err != nil || &first[0] != &again[0] {
		t.Errorf("it is made again: %v", err)
	}
	if other, err := h.Tools(t.Context(), p, "mcp"); err != nil || string(other) == string(first) {
		t.Errorf("another format: %v", err)
	}
	if err := h.skills.Refresh(t.Context()); err != nil { // as after a change
		t.Fatal(err)
	}
	if again, err = h.Tools(t.Context(), p, "openai"); err != nil || &first[0] == &again[0] || string(again) != string(first) {
		t.Errorf("after a change: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := h.Tools(gone, p, "anthropic"); skill.CodeOf(err) != skill.Cancelled {
		t.Errorf("for a caller that left: %v", err)
	}
}
