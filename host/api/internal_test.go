package api

import (
	"encoding/json"
	"io/fs"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"openskill/host/dispatch"
	"openskill/host/internal/gate"
	"openskill/internal/musttest"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
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

// FuzzAgentBodies: what is taken of a body is what encoding/json reads in it, and never a
// number that is "no opinion" to the agent.
func FuzzAgentBodies(f *testing.F) {
	for _, b := range []string{
		`{"message":"x"}`, `{"message":"\u00e9\n","conversation_id":"c","provider":"p","model":"m","max_iterations":1,"max_tool_calls":2.0,"max_tokens":3e2,"stream":true}`,
		`{"approval_id":"a","approve":false,"stream":false,"max_tokens":9007199254740991}`, `{"task":"x","context":{"a":[1]},"options":{"max_iterations":5,"timeout_seconds":null,"skills":["a","\u0062"]}}`,
		`{"task":"x","context":null,"options":null}`, `{"message":"x","message":"y"}`, `{"Message":"x"}`, `{"message":"x","stream":1}`, `{"task":"x","options":{"skills":[]}}`, "", "{", "{}",
	} {
		f.Add([]byte(b))
	}
	type said struct {
		Message, Provider, Model, Task string
		Conversation                   string   `json:"conversation_id"`
		Approval                       string   `json:"approval_id"`
		Iterations                     *float64 `json:"max_iterations"`
		Calls                          *float64 `json:"max_tool_calls"`
		Tokens                         *float64 `json:"max_tokens"`
		Stream, Approve                *bool
		Context                        json.RawMessage
		Options                        struct {
			Iterations *float64 `json:"max_iterations"`
			Timeout    *float64 `json:"timeout_seconds"`
			Skills     []string
		}
	}
	number := func(t *testing.T, got int, want *float64) {
		t.Helper()
		if want == nil && got != 0 || want != nil && (got < 1 || float64(got) != min(*want, math.MaxInt32)) {
			t.Fatalf("%d, not %v", got, want)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func() (v said) {
			t.Helper()
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatalf("taken, and encoding/json refuses it: %v", err)
			}
			return v
		}
		flagged := func(got, without bool, want *bool) {
			t.Helper()
			if want == nil && got != without || want != nil && got != *want {
				t.Fatalf("%v, not %v", got, want)
			}
		}
		for _, without := range []bool{false, true} {
			stream := without
			if r, err := decodeChat(b, &stream); err == nil {
				v := read()
				if r.Message != v.Message || r.Conversation != v.Conversation || r.Provider != v.Provider || r.Model != v.Model {
					t.Fatalf("%+v, not %+v", r, v)
				}
				number(t, r.MaxIterations, v.Iterations)
				number(t, r.MaxToolCalls, v.Calls)
				number(t, r.MaxTokens, v.Tokens)
				flagged(stream, without, v.Stream)
			}
			stream = without
			if d, err := decodeDecision(b, &stream); err == nil && len(b) > 0 {
				v := read()
				if d.ApprovalID != v.Approval || d.Provider != v.Provider || d.Model != v.Model {
					t.Fatalf("%+v, not %+v", d, v)
				}
				flagged(d.Approve, true, v.Approve)
				flagged(stream, without, v.Stream)
			}
		}
		if task, err := decodeTask(b); err == nil {
			v := read()
			if task.Text != v.Task || (task.Context == nil) != (len(v.Context) == 0 || string(v.Context) == "null") || !slices.Equal(task.Options.Skills, v.Options.Skills) {
				t.Fatalf("%+v, not %+v", task, v)
			}
			number(t, task.Options.MaxIterations, v.Options.Iterations)
			number(t, task.Options.TimeoutSeconds, v.Options.Timeout)
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

// Every route that needs a caller has its turn by tenants: here, or in what it starts.
func TestEveryRouteHasAGate(t *testing.T) {
	s := &Server{reads: NewReads(false), records: newRecords(false)}
	passesItsOwn := map[*kind]bool{kindCall: true, kindWork: true, kindTurn: true, kindUpload: true, kindFile: true, kindReport: true, kindStream: true, kindMessage: true}
	for _, r := range Routes() {
		var g *gate.Gate
		if r.kind.gate != nil {
			g, _ = r.kind.gate(s)
		}
		if (g == nil) != (r.Open() || passesItsOwn[r.kind]) {
			t.Errorf("%s %s: gate %v", r.Method, r.Path, g != nil)
		}
	}
}

// Nobody is let in by a row without scopes, or by a scope that is only like the one that
// is asked for.
func TestLetsIn(t *testing.T) {
	find := func(method, path string) *Route {
		for _, r := range Routes() {
			if r.Method == method && r.Path == path {
				return &r
			}
		}
		t.Fatal(path)
		return nil
	}
	invoke, mcp := find("POST", pathInvoke), find("POST", pathMCP)
	for _, tc := range []struct {
		route   *Route
		scopes  string
		subject string
		want    bool
	}{
		{invoke, "skills:invoke", "echo", true},
		{invoke, "skills:invoke:echo", "echo", true},
		{invoke, "skills:invoke:echo", "ech", false},
		{invoke, "skills:invoke:echo", "", false},
		{invoke, "skills:invoke:", "", false},
		{invoke, "skills:invoke:{id}", "echo", false},
		{invoke, "skills:invoke:*", "echo", false},
		{invoke, "skills:read admin skills:admin", "echo", false},
		{mcp, "skills:invoke:echo", "", true},
		{mcp, "skills:upload", "", false},
		{&Route{}, "admin", "", false},
		{&Route{kind: kindOpen}, "", "", true},
	} {
		p := skill.Principal{ID: "x", Scopes: strings.Fields(tc.scopes)}
		if got := tc.route.LetsIn(p, tc.subject); got != tc.want {
			t.Errorf("%s lets in %q for %q: %v", tc.route.Path, tc.scopes, tc.subject, got)
		}
		if p.ID = ""; tc.route.LetsIn(p, tc.subject) && !tc.route.Open() {
			t.Errorf("%s lets in nobody with %q", tc.route.Path, tc.scopes)
		}
	}
}

// One holder gets half of a budget, two a third each, and what is given back is free.
func TestBudgetIsShared(t *testing.T) {
	b := newBudget(900, false)
	fill := func(holder string) (n int) {
		for b.take(holder, 10) {
			n += 10
		}
		return n
	}
	if n := fill("a"); n != 450 {
		t.Errorf("one has %d", n)
	}
	if n := fill("b"); n < 220 {
		t.Errorf("the second one has %d", n)
	}
	if !b.take("c", 100) {
		t.Error("there is nothing for a third one")
	}
	b.give("a", 450)
	for holder, n := range map[string]int{"b": b.held["b"], "c": b.held["c"]} {
		b.give(holder, n)
	}
	if b.used != 0 || len(b.held) != 0 {
		t.Errorf("%d bytes are held by %v", b.used, b.held)
	}
	if b.take("a", 901) {
		t.Error("more than there is")
	}
	if b = newBudget(900, true); fill("a") != 900 {
		t.Error("the one tenant of a host has not all")
	}
}

// Holders of one wide network have no more together than one holder has.
func TestWideNetworksShareABudget(t *testing.T) {
	for _, network := range []string{"2001:db8:%x::/64", "192.0.2.%d", "invalid IP"} {
		b := newBudget(900, false)
		b.wide = wideNetwork
		of := func(i int) string {
			return strings.Replace(strings.Replace(network, "%x", strconv.FormatInt(int64(i), 16), 1), "%d", strconv.Itoa(i), 1)
		}
		had := 0
		for i := range 250 {
			for b.take(of(i), 10) {
				had += 10
			}
		}
		if had != 450 {
			t.Errorf("%s: one network has %d of 900 bytes", network, had)
		}
		if !b.take("198.51.100.1", 100) || !b.take("2001:db9::/64", 100) {
			t.Errorf("%s: there is nothing for others", network)
		}
		b.give("198.51.100.1", 100)
		b.give("2001:db9::/64", 100)
		for i := range 250 {
			if n := b.held[of(i)]; n > 0 {
				b.give(of(i), n)
			}
		}
		if b.used != 0 || len(b.held) != 0 {
			t.Errorf("%s: %d bytes are held by %v", network, b.used, b.held)
		}
	}
}

// The input of a call is parsed with its body; that of a long one when there is a place for it.
func TestInputIsParsedOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		parsed bool
	}{
		"short": {`{"version":"1.0.0","input":{"a":[1,"x"]}}`, true},
		"long":  {`{"input":{"a":"` + strings.Repeat("x", dispatch.HeavyInput) + `"}}`, false},
	} {
		var r skill.Request
		musttest.Do(t, decodeInvoke([]byte(tc.body), &r))
		want, err := strictjson.Decode(r.Input, dispatch.MaxInputDepth, nil)
		if err != nil || (r.Value != nil) != tc.parsed || tc.parsed && !reflect.DeepEqual(r.Value, want) {
			t.Errorf("%s: %v %v, want %v", name, err, r.Value, want)
		}
	}
	deep := strings.Repeat(`{"a":`, dispatch.MaxInputDepth+1) + "1" + strings.Repeat("}", dispatch.MaxInputDepth+1)
	if err := decodeInvoke([]byte(`{"input":`+deep+`}`), new(skill.Request)); err == nil {
		t.Error("it is nested too deep")
	}
}
