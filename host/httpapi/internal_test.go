package httpapi

import (
	"io/fs"
	"strings"
	"testing"
)

// FuzzCheckFileName: what passes names a place below a folder, and nothing else.
func FuzzCheckFileName(f *testing.F) {
	for _, name := range []string{"a/b.md", "..", "a/../b", "/a", "a//b", `a\b`, "a\x00", "caf\u00e9", "\xff", "a/.", "...", "c:/x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if checkFileName("resource", name) != nil {
			return
		}
		if !fs.ValidPath(name) || name == "." || len(name) > maxName || strings.ContainsAny(name, "\x00\n\r\\\x7f") {
			t.Fatalf("%q passes", name)
		}
	})
}

func TestWholeNumber(t *testing.T) {
	for _, tc := range []struct {
		text string
		want uint64
		ok   bool
	}{
		{"0", 0, true},
		{"12", 12, true},
		{"12.0", 12, true},
		{"1.2e1", 12, true},
		{"-0", 0, true},
		{"0e9", 0, true},
		{"9007199254740991", 1<<53 - 1, true},
		{"9007199254740992", 0, false},
		{"18446744073709551616", 0, false},
		{"1e400", 0, false},
		{"-1", 0, false},
		{"1.5", 0, false},
		{"1e-1", 0, false},
		{`"12"`, 0, false},
		{"null", 0, false},
		{"true", 0, false},
		{"{}", 0, false},
		{"[1]", 0, false},
	} {
		got, ok := wholeNumber([]byte(tc.text))
		if ok != tc.ok || ok && got != tc.want {
			t.Errorf("wholeNumber(%s) = %d, %v", tc.text, got, ok)
		}
	}
}

func TestFirstWords(t *testing.T) {
	for _, tc := range []struct{ name, head, want string }{
		{"whole", "POST /skills/a:invoke HTTP/1.1\r\nHost: x\r\nx-trace-ID:  t-1 \r\n\r\nbody", "POST|/skills/a:invoke|t-1"},
		{"without a trace id", "GET /skills HTTP/1.1\r\nHost: x\r\n\r\nX-Trace-Id: in-the-body", "GET|/skills|"},
		{"cut in the trace id", "GET /skills HTTP/1.1\r\nX-Trace-Id: t", "GET|/skills|t"},
		{"cut in the request line", "POST /skills/a:inv", "GET|/|"},
		{"nothing", "", "GET|/|"},
		{"no request", "\x16\x03\x01 / HTTP\r\n", "GET|/|"},
		{"another host", "GET http://evil.example/ HTTP/1.1\r\n", "GET|/|"},
	} {
		method, target, trace := (&conn{head: []byte(tc.head)}).firstWords()
		if got := string(method) + "|" + string(target) + "|" + string(trace); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestCleanMessage(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "": "the call failed", "\x00\x1b": "the call failed", "a\nb": "a b", "\x1b[31mred": "[31mred", "héllo": "héllo",
		strings.Repeat("x", maxMessage): strings.Repeat("x", maxMessage),
	} {
		if got := cleanMessage(in); got != want {
			t.Errorf("cleanMessage(%q) = %q, want %q", in, got, want)
		}
	}
	if got := cleanMessage(strings.Repeat("é", maxMessage)); len(got) > maxMessage {
		t.Errorf("a long message keeps %d bytes", len(got))
	}
}
