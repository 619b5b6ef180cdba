package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// What JSONB gives back is equal to what went in, or the column exact has the bytes: the sign
// of zero, exponents, doubled keys, NUL and halves of surrogates are the known cases, and
// generated documents look for others.
func TestPayloadsComeBackEqual(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		s := records.NewStore(fresh(t)())
		r := rand.New(rand.NewPCG(1, 2026))
		texts := []string{
			`-0`, `{"x":-0}`, `[-0.0, -0.000]`, `-0e0`, `1e400`, `-1e-400`, `1.500`, `100.00`, `0.0000000000000000000000000000001000`, `1E5`,
			`{"a":1,"a":2}`, `{"a":1,"\u0061":1}`, `{"b":{"a":1,"a":1}}`, `"\u0000"`, `{"\u0000":1}`, `"\ud800"`, `"\udc00\ud800"`, `"\ud83d\ude00"`,
			`{"":0,"\"":1}`, `"\/"`, `""`, `[]`, `{}`, ` [ 1 ,2 ] `, "1" + strings.Repeat("0", 999), "0." + strings.Repeat("0", 900) + "1",
			"0." + strings.Repeat("3", 20_000), strings.Repeat("9", 140_000), strings.Repeat(`[`, 300) + strings.Repeat(`]`, 300),
		}
		for range 400 {
			texts = append(texts, document(r, 0))
		}
		var entries []*records.Entry
		want := map[string]string{}
		for _, text := range texts {
			if !json.Valid([]byte(text)) {
				t.Fatalf("%q is not JSON", text)
			}
			e := payloadOf(text)
			want[e[0].ExecutionID] = text
			entries = append(entries, e...)
		}
		for batch := range slices.Chunk(entries, 50) {
			musttest.Do(t, s.Append(t.Context(), batch))
		}
		for id, text := range want {
			e := musttest.Get(s.Execution(t.Context(), "acme", id))(t)
			for _, got := range []string{string(e.Input.JSON), string(e.Finished.Output.JSON)} {
				if got != text && canonical(t, got) != canonical(t, text) {
					t.Errorf("%.200s became %.200s", text, got)
				}
			}
		}
		report, err := records.Verify(t.Context(), s, records.VerifyOptions{Rows: true})
		if err != nil || !report.Whole() {
			t.Errorf("%+v, %v", report.Chains, err)
		}
	})
}

// payloadOf is a call whose input and output are text.
func payloadOf(text string) []*records.Entry {
	id := uuid.Must(uuid.NewV7()).String()
	s := &records.Started{
		ExecutionID: id, Tenant: "acme", Principal: "key:ci", PrincipalType: skill.Agent, TraceID: "t", Session: id,
		Skill: "echo", Version: "0.1.0", Instance: "host-1", Time: time.Now().UTC().Truncate(time.Microsecond),
		Input: records.Payload{Bytes: int64(len(text)), JSON: json.RawMessage(text)},
	}
	f := &records.Finished{ExecutionID: id, Status: records.Success, Runner: "wasm:wasi", Time: s.Time, Output: s.Input}
	record := func(kind string, v any) records.Record {
		body, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return records.Record{Tenant: "acme", Kind: kind, ExecutionID: id, Time: s.Time, Body: body}
	}
	return []*records.Entry{
		{Record: record(records.KindStarted, s), Started: s},
		{Record: record(records.KindFinished, f), Finished: f, Of: s},
	}
}

// document generates JSON with what databases handle differently.
func document(r *rand.Rand, depth int) string {
	text := func() string {
		parts := []string{"a", "b", `\u0000`, `\ud800`, `\udfff`, `\ud83d\ude00`, `\u00e9`, "é", `\\`, `\"`, `\n`, "1", "-0", `\\u0000`, "\u2028", "\U0010ffff"}
		var b strings.Builder
		for range r.IntN(3) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		return `"` + b.String() + `"`
	}
	switch n := r.IntN(10); {
	case n < 4 || depth > 4:
		sign := []string{"", "-"}[r.IntN(2)]
		whole := []string{"0", "1", "10", "1234567890123456789012", "9007199254740993"}[r.IntN(5)]
		fraction := []string{"", ".0", ".000", ".5", ".500", ".0000000001", ".10000000000000000000000000000000000001"}[r.IntN(7)]
		exponent := []string{"", "", "", "", "e0", "E-1", "e+400", "e5"}[r.IntN(8)]
		return sign + whole + fraction + exponent
	case n < 6:
		return text()
	case n < 7:
		return []string{"true", "false", "null"}[r.IntN(3)]
	case n < 8:
		var all []string
		for range r.IntN(4) {
			all = append(all, document(r, depth+1))
		}
		return "[" + strings.Join(all, ", ") + "]"
	default:
		var all []string
		for range r.IntN(4) {
			all = append(all, text()+" : "+document(r, depth+1))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
}

// canonical is a document without regard to spaces, the order of keys, and how strings are
// spelt; numbers stay as written, and a doubled key is there twice.
func canonical(t *testing.T, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value func() string
	value = func() string {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		open, isDelim := token.(json.Delim)
		if !isDelim {
			return fmt.Sprintf("%T%q", token, fmt.Sprint(token))
		}
		var all []string
		for d.More() {
			one := value()
			if open == '{' {
				one += ":" + value()
			}
			all = append(all, one)
		}
		musttest.Get(d.Token())(t)
		if open == '{' {
			slices.Sort(all)
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "%v%d%q", open, len(all), all)
		return b.String()
	}
	return value()
}
