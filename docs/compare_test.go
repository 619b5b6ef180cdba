package docs_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// volatile are the fields that are different in every run, or on every machine,
// or wherever a fallback answers; and fields that have a value of their own only
// where a caller gave one.
var volatile = map[string]bool{
	"latency_ms": true, "execution_id": true, "digest": true, "fuel_used": true, "memory_peak_bytes": true,
	"runner": true, "runner_type": true, "time": true, "ms": true, "commit": true, "dirty": true, "go": true, "wazero": true,
	"os": true, "arch": true, "compile_ms": true, "instantiate_ms": true, "run_ms": true, "total_ms": true,
}

var (
	madeUp  = regexp.MustCompile(`^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
	headers = regexp.MustCompile(`^(Date|Content-Length|X-Trace-Id): (?:\w{3}, .*|\d+|[0-9a-f]{32})$`)
	took    = regexp.MustCompile(`\(\d+ ms\)`)
	// What go test took, or that it had not to run, and lines of the code.
	tested = regexp.MustCompile(`^((?:ok|FAIL) openskill/\S+) (?:\d+\.\d+s|\(cached\))`)
	passed = regexp.MustCompile(`\(\d+\.\d\ds\)$`)
	inCode = regexp.MustCompile(`^(\w+\.go):\d+:`)
	// Digests of what a compiler made, its size, and keys that were made just now.
	digests = regexp.MustCompile(`(sha256:)[0-9a-f]{64}( \d+ bytes$)?`)
	signers = regexp.MustCompile(`\bRW[0-9A-Za-z+/]{54}|\b[0-9A-F]{16}\b`)
	// The one line that depends on what was compiled before.
	preparing = "openskill: getting the skill's runtime ready; the first time takes some seconds"
)

// lines brings what a command printed into a form that can be compared: JSON on
// one line each, without what is volatile.
func lines(text string) (all []string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for text = strings.TrimRight(text, "\n"); text != ""; {
		if text[0] == '{' || text[0] == '[' {
			dec := json.NewDecoder(strings.NewReader(text))
			dec.UseNumber()
			var v any
			if dec.Decode(&v) == nil {
				b, _ := json.Marshal(settle("", v)) // of what was JSON
				all = append(all, string(b))
				text = strings.TrimLeft(text[dec.InputOffset():], " \n")
				continue
			}
		}
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = took.ReplaceAllString(strings.Join(strings.Fields(line), " "), "(… ms)")
		line = signers.ReplaceAllString(digests.ReplaceAllString(line, "${1}…"), "KEY")
		line = inCode.ReplaceAllString(passed.ReplaceAllString(tested.ReplaceAllString(line, "$1 …"), "(… s)"), "$1:")
		if m := headers.FindStringSubmatch(line); m != nil {
			line = m[1] + ": …"
		}
		if line != preparing {
			all = append(all, line)
		}
	}
	return all
}

// settle replaces what is volatile in a JSON value.
func settle(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = settle(k, e)
		}
		return v
	case []any:
		for i, e := range v {
			v[i] = settle("", e)
		}
		return v
	case string:
		if key == "trace_id" && madeUp.MatchString(v) {
			return "…"
		}
	}
	if volatile[key] && v != "" { // an empty one says that there is none
		return "…"
	}
	return v
}

// matches compares lines, where … in want stands for any number of lines.
func matches(want, have []string) bool {
	if len(want) == 0 {
		return len(have) == 0
	}
	if want[0] == "…" {
		for i := range len(have) + 1 {
			if matches(want[1:], have[i:]) {
				return true
			}
		}
		return false
	}
	return len(have) > 0 && same(want[0], have[0]) && matches(want[1:], have[1:])
}

// same compares two lines; in JSON the string … stands for any value.
func same(want, have string) bool {
	if want == have {
		return true
	}
	var w, h any
	if json.Unmarshal([]byte(want), &w) != nil || json.Unmarshal([]byte(have), &h) != nil {
		return false
	}
	return sameValue(w, h)
}

func sameValue(want, have any) bool {
	switch want := want.(type) {
	case string:
		if want == "…" {
			return true
		}
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok || len(have) != len(want) {
			return false
		}
		for k, w := range want {
			if h, there := have[k]; !there || !sameValue(w, h) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return false
		}
		for i := range want {
			if !sameValue(want[i], have[i]) {
				return false
			}
		}
		return true
	}
	return cmp.Equal(want, have)
}

// TestComparing holds that the comparison notices what it must: a comparison that
// accepts everything would let every page pass.
func TestComparing(t *testing.T) {
	for _, c := range []struct {
		want, have string
		same       bool
	}{
		{"a\nb\n", "a\nb", true},
		{"a\n", "b\n", false},
		{"a\n", "a\nb\n", false},
		{"", "a\n", false},
		{"a   b\n", "a b\n", true},
		{"a\n…\nc\n", "a\nb1\nb2\nc\n", true},
		{"a\n…\nc\n", "a\nb\nd\n", false},
		{"{\"a\": 1,\n \"b\": [2]}\nexit 1\n", "{\"b\":[2],\"a\":1}\nexit 1\n", true},
		{`{"a": 1}`, `{"a": 2}`, false},
		{`{"a": 1}`, `{"a": 1, "b": 2}`, false},
		{`{"a": "…"}`, `{"a": {"b": [2]}}`, true},
		{`{"a": "…"}`, `{}`, false},
		{`{"latency_ms": 1}`, `{"latency_ms": 7}`, true},
		{`{"digest": ""}`, `{"digest": "sha256:1"}`, false},
		{`{"trace_id": "demo-123"}`, `{"trace_id": "demo-124"}`, false},
		{`{"trace_id": "0123456789abcdef0123456789abcdef"}`, `{"trace_id": "00000000000000000000000000000000"}`, true},
		{"ok openskill/a 0.1s", "ok \topenskill/a\t(cached)", true},
		{"ok openskill/a 0.1s", "ok openskill/a 0.1s [no tests to run]", false},
		{"FAIL openskill/a 0.1s", "ok openskill/a 0.1s", false},
		{"--- FAIL: TestA (0.00s)\n    a_test.go:12: no", "--- FAIL: TestA (1.23s)\n    a_test.go:7: no", true},
		{"--- FAIL: TestA (0.00s)", "--- FAIL: TestB (0.00s)", false},
		{preparing + "\n{}\n", "{}", true},
	} {
		if got := matches(lines(c.want), lines(c.have)); got != c.same {
			t.Errorf("%q and %q: %v", c.want, c.have, got)
		}
	}
}
