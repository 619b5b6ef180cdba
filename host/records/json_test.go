package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestJSONFits(t *testing.T) {
	for text, want := range map[string]bool{
		`null`: true, `"plain"`: true, `{"a": [1, -2.5, 0.001, true, false, null, "é€"]}`: true, `"\\u0000"`: true, `"\"\\"`: true, `"\u00e9"`: true,
		strings.Repeat("9", 1000): true, strings.Repeat("[", 200) + strings.Repeat("]", 200): true, `"{[1e9"`: true,
		`"\ud83d\ude00"`: true, `"-0"`: true, `[-0.01, 0, 0.0, "\"-0"]`: true,
		`"\u0000"`: false, `{"\u0000": 1}`: false, `"\\\u0000"`: false, `"\uDEAD"`: false, "\"\xff\"": false, "\"\x00\"": false,
		`1e9`: false, `[1E-9]`: false, strings.Repeat("9", 1001): false, strings.Repeat("[", 501) + strings.Repeat("]", 501): false,
		`-0`: false, `[-0.0]`: false, `{"a":{"b":-0.000}}`: false, `{"a":1,"a":1}`: false, `[{"a":1,"\u0061":1}]`: false,
		`1}`: false, `1,"b":2`: false, `}{`: false,
		``: false, `{`: false, `"`: false, `"\`: false, `"\u00`: false, `1 2`: false, `nul`: false,
	} {
		if got := jsonFits([]byte(text)); got != want {
			t.Errorf("%.40s: got %v", text, got)
		}
	}
}

// What fits is JSON without what PostgreSQL refuses in it, however it is written.
func FuzzJSONFits(f *testing.F) {
	f.Add([]byte(`{"a": ["\u0000", -1.5e9, "\ud83d\ude00"]}`))
	f.Add([]byte(`{"\\u0000": [[{}]], "b": -0.5}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !jsonFits(raw) {
			return
		}
		in := json.NewDecoder(bytes.NewReader(raw))
		in.UseNumber()
		for {
			token, err := in.Token()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatalf("%q fits: %v", raw, err)
			}
			switch v := token.(type) {
			case string:
				if strings.Contains(v, "\x00") {
					t.Errorf("%q fits", raw)
				}
			case json.Number:
				if len(v) > 1000 || strings.ContainsAny(string(v), "eE") || strings.Trim(string(v), "0.") == "-" {
					t.Errorf("%q fits", raw)
				}
			}
		}
	})
}
