package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"openskill/host/agent/tools"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A list is made once, again when something of it changes, and not for a caller that left.
func TestToolsAreMadeOnce(t *testing.T) {
	h := musttest.Get(Open(settings(t, nil), &Options{Log: slog.New(slog.DiscardHandler)}))(t)
	defer h.Close()
	p := skill.Local()
	first, _, err := h.Tools(t.Context(), p, "openai", "", 1000)
	if err != nil || len(first) == 0 {
		t.Fatal(err)
	}
	again, _, err := h.Tools(t.Context(), p, "openai", "", 1000)
	if err != nil || &first[0] != &again[0] {
		t.Errorf("it is made again: %v", err)
	}
	if other, _, err := h.Tools(t.Context(), p, "mcp", "", 1000); err != nil || string(other) == string(first) {
		t.Errorf("another format: %v", err)
	}
	if err := h.skills.Refresh(t.Context()); err != nil { // as after a change
		t.Fatal(err)
	}
	if again, _, err = h.Tools(t.Context(), p, "openai", "", 1000); err != nil || &first[0] == &again[0] || string(again) != string(first) {
		t.Errorf("after a change: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := h.Tools(gone, p, "anthropic", "", 1000); skill.CodeOf(err) != skill.Cancelled {
		t.Errorf("for a caller that left: %v", err)
	}
}

// However many tools there are, pages have all of them once, in their order; a skill that goes
// away between two pages moves no other.
func TestToolsComeInPages(t *testing.T) {
	var list []skill.Tool
	for _, name := range []string{"load_skill", "read_skill_resource"} {
		list = append(list, skill.Tool{Name: name})
	}
	for i := range 2500 {
		list = append(list, skill.Tool{Name: fmt.Sprintf("skill-%04d", i), Description: `a,b]["`})
	}
	for _, own := range []int{0, 2} {
		for _, format := range tools.Formats() {
			all := musttest.Get(written(t.Context(), format, list[2-own:], own))(t)
			for _, limit := range []int{1, 7, 1000, 2499, 2500, math.MaxInt} {
				var got []json.RawMessage
				pages := 0
				for cursor := ""; ; pages++ {
					part, next, err := all.page(cursor, limit)
					musttest.Do(t, err)
					var tools []json.RawMessage
					if err := json.Unmarshal(part, &tools); err != nil {
						t.Fatalf("%v: %.200s", err, part)
					}
					if most := limit; cursor == "" && most < math.MaxInt && len(tools) != most+own || cursor != "" && len(tools) > most {
						t.Errorf("a page of %d has %d tools", limit, len(tools))
					}
					if got = append(got, tools...); next == "" {
						break
					}
					cursor = next
				}
				var want []json.RawMessage
				if err := json.Unmarshal(all.all, &want); err != nil || !slices.EqualFunc(got, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
					t.Errorf("%s by %d: %d of %d tools, %v", format, limit, len(got), len(want), err)
				}
				if want := (2500 - 1) / min(limit, 2500); pages != want {
					t.Errorf("by %d: %d pages, want %d", limit, pages+1, want+1)
				}
			}
			gone, _, err := all.page("skill-0099x", 1)
			if err != nil || !strings.Contains(string(gone), "skill-0100") {
				t.Errorf("after a skill that is gone: %s %v", gone, err)
			}
			if last, next, err := all.page("z", 5); err != nil || string(last) != "[]\n" || next != "" {
				t.Errorf("after the last: %s %q %v", last, next, err)
			}
			for _, cursor := range []string{"../x", "A", strings.Repeat("x", 65)} {
				if _, _, err := all.page(cursor, 5); skill.CodeOf(err) != skill.InvalidArgument {
					t.Errorf("%q: %v", cursor, err)
				}
			}
		}
	}
}
