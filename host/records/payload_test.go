package records_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"openskill/host/records"
	"openskill/internal/musttest"
)

var update = flag.Bool("update", false, "write what is there now into testdata")

// What each policy keeps of an input is in testdata/payloads.txtar: files named input, none,
// hash, redacted and full follow each other.
func TestPayloads(t *testing.T) {
	file := filepath.Join("testdata", "payloads.txtar")
	a := musttest.Get(txtar.ParseFile(file))(t)
	var out []txtar.File
	for _, f := range a.Files {
		name, ok := strings.CutSuffix(f.Name, "/input")
		if !ok {
			continue
		}
		input := bytes.TrimSuffix(f.Data, []byte("\n"))
		out = append(out, f)
		for _, p := range []records.Policy{records.KeepNone, records.KeepHash, records.KeepRedacted, records.KeepFull} {
			kept := p.Payload(input, 400)
			b, err := json.Marshal(kept)
			if err != nil {
				t.Fatalf("%s by %s: %v", f.Name, p, err)
			}
			out = append(out, txtar.File{Name: name + "/" + string(p), Data: append(b, '\n')})
		}
	}
	got := txtar.Format(&txtar.Archive{Comment: a.Comment, Files: out})
	if *update {
		musttest.Do(t, os.WriteFile(file, got, 0o600))
		return
	}
	for i, f := range out {
		if i >= len(a.Files) || a.Files[i].Name != f.Name || !bytes.Equal(a.Files[i].Data, f.Data) {
			t.Fatalf("run with -update after checking: %s is now\n%s", f.Name, f.Data)
		}
	}
}

func TestPayloadsBeyondBounds(t *testing.T) {
	const most = 1000
	large := `{"a":"` + strings.Repeat("x", 2<<20) + `"}`
	for name, input := range map[string]string{
		"large": large, "deep": strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), "deep objects": strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000),
		"wide": "[" + strings.Repeat("1,", 100_000) + "1]", "wide object": `{"k":1` + strings.Repeat(`,"k":1`, 50_000) + "}",
		"tree":     strings.Repeat(`[[1,1],`, 5000) + "1" + strings.Repeat("]", 5000),
		"not JSON": strings.Repeat("words ", 1000), "not UTF-8": "{\"a\":\"\xff\xfe\"}", "bytes": "\x00\xff\x01", "cut off": `{"a":[1,2,{"b":"c`, "two": "1 2",
		"long key": `{"` + strings.Repeat("k", 5000) + `":1}`, "long number": `{"a":` + strings.Repeat("9", 500) + `}`, "empty": "", "spaces": "  ",
	} {
		for _, p := range []records.Policy{records.KeepNone, records.KeepHash, records.KeepRedacted, records.KeepFull} {
			kept := p.Payload([]byte(input), most)
			if kept.Bytes != int64(len(input)) || len(kept.JSON) > most || kept.JSON != nil && (!json.Valid(kept.JSON) || !utf8.Valid(kept.JSON)) {
				t.Errorf("%s by %s: %d bytes, %.80s", name, p, kept.Bytes, kept.JSON)
			}
			if kept.JSON == nil && input != "" && (p == records.KeepRedacted || p == records.KeepFull) && !kept.Truncated {
				t.Errorf("%s by %s: it is left out, and not said to be", name, p)
			}
			if (p == records.KeepNone) != (kept.SHA256 == "") && p != records.KeepRedacted {
				t.Errorf("%s by %s: the hash is %q", name, p, kept.SHA256)
			}
			if p == records.KeepRedacted && kept.Truncated && kept.SHA256 != "" {
				t.Errorf("%s: something is left out, and the hash helps to guess it", name)
			}
		}
	}
}

// mark is what no record may have in it, wherever a secret stands. It looks like a word.
const mark = "Quetzalcoatl"

// secret places have a mark, each in another way.
var secretPlaces = []string{
	`{"password":"MARK"}`, `{"PassWord":"MARK"}`, `{"user":{"db_password":["MARK","MARK"]}}`, `{"API-Key":"MARK"}`, `{"api_key":{"a":{"b":"MARK"}}}`,
	`{"x":[{"Authorization":"MARK"}]}`, `{"Set-Cookie":"sid=MARK"}`, `{"clientSecret":"MARK"}`, `{"refresh_token":"MARK"}`, `{"ｐａｓｓｗｏｒｄ":"MARK"}`,
	`{"p\u0061ssword":"MARK"}`, `{"pass\u200bword":"MARK"}`, `{"PASSWORD ":"MARK"}`, `{"auth":"MARK"}`, `{"pin":"MARK"}`, `{"password":"a","password":"MARK"}`,
	`["--password","MARK"]`, `["--token=MARK"]`, `[["Authorization","MARK"]]`, `{"headers":[{"name":"X-Api-Key","value":"MARK"}]}`, `{"value":"MARK","key":"secret"}`,
	`{"args":["curl","-H","Authorization: Bearer MARK","https://example.com"]}`,
	`"password=MARK"`, `"my password is MARK"`, `"MARK is my password"`, `"the token: MARK, and more"`, `"Authorization: Basic MARK"`, `"Basic MARK"`,
	`"https://user:MARK@example.com/x"`, `"postgres://u:MARK/MARK@h/db"`, `"https://example.com/?q=MARK&b=1"`, `"user:MARK@host"`, `"https://example.com/cb#access=MARK"`,
	`"eyJhbGciOiJIUzI1NiJ9.MARK.c2ln"`, `"eyJMARK"`, `"sk-MARK"`, `"ghp_MARK"`, `"xoxb-MARK"`, `"a sk_live_MARK b"`, `"AKIAMARK"`, `"MARK0123456789"`, `"0aMARKMARKMARKMARK"`,
	`"-----BEGIN RSA PRIVATE KEY-----\nMARK\n-----END"`, `"{\"password\":\"MARK\"}"`, `"pin: MARK"`, `"auth = 'MARK MARK'"`, `{"ghp_MARK":1}`, `{"password MARK":1}`,
	`"?sig=MARK"`, `{"env":["PGPASSWORD=MARK"]}`, `{"Cookie":{"a":"MARK"}}`, `{"text":"jwt MARK"}`, `{"passphrase":"MARK","n":1}`,
}

// wrapped puts JSON into other JSON, by the bytes of a seed.
func wrapped(value string, seed []byte) string {
	for _, b := range seed[:min(len(seed), 40)] {
		switch b % 8 {
		case 0:
			value = "[" + value + "]"
		case 1:
			value = `{"a":` + value + `}`
		case 2:
			value = `{"n":1,"list":[true,null,` + value + `,"text"],"z":{}}`
		case 3:
			value = "[1," + value + ",2]"
		case 4:
			value = ` { "name" : "x" , "value" : ` + value + ` } `
		case 5:
			value = `[[],[` + value + `],{}]`
		case 6:
			value = `{"` + string('a'+rune(b>>3)%26) + `":` + value + `,"more":"words"}`
		case 7:
			inner, err := json.Marshal(value)
			if err != nil {
				return value
			}
			if len(inner) < 2000 {
				value = string(inner) // JSON in a string, as tools like to hand it on
			}
		}
	}
	return value
}

func TestRedactedHasNoSecret(t *testing.T) {
	for i, place := range secretPlaces {
		input := strings.ReplaceAll(place, "MARK", mark)
		for _, seed := range []string{"", "\x00\x01\x02", "\x07", "\x02\x07\x03", "\x04\x05\x06\x07\x07", "\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06"} {
			in := wrapped(input, []byte(seed))
			if !json.Valid([]byte(in)) {
				t.Fatalf("%d: %s is no JSON", i, in)
			}
			kept := records.KeepRedacted.Payload([]byte(in), 16<<10)
			if bytes.Contains(kept.JSON, []byte(mark)) || kept.SHA256 != "" {
				t.Errorf("%s\nleaves %s %s", in, kept.JSON, kept.SHA256)
			}
		}
	}
}

// What is harmless stays readable: a record that says nothing helps nobody.
func TestRedactedKeepsWhatIsHarmless(t *testing.T) {
	for _, input := range []string{
		`{"text":"hello"}`, `{"path":"./data/notes.md","pattern":"TODO","max_results":20}`, `{"numbers":[10.5,9.9,11.2],"ops":["mean","median"]}`,
		`{"author":"Ada Lovelace","keyboard":"qwertz","monkey":1}`, `{"max_tokens":4096,"total_tokens":12}`, `{"when":"2026-11-22T10:30:00Z"}`, `"Grüße, 世界"`,
		`[]`, `{}`, `null`, `true`, `-1.5e3`, `""`, `{"sort":{"key":"name","order":"asc"}}`, `{"url":"https://example.com/docs/page"}`, `{"mail":"ada@example.com"}`,
	} {
		if kept := records.KeepRedacted.Payload([]byte(input), 1000); string(kept.JSON) != input || kept.Truncated || len(kept.SHA256) != 64 {
			t.Errorf("%s is kept as %s, truncated: %t, hash %q", input, kept.JSON, kept.Truncated, kept.SHA256)
		}
	}
}

// FuzzRedacted puts a marked secret somewhere into JSON that the fuzzer makes, and wants
// that it never comes out; and it hands over the fuzzer's own bytes.
func FuzzRedacted(f *testing.F) {
	for i := range secretPlaces {
		f.Add(i, []byte{byte(i), byte(i >> 1), 7}, []byte(secretPlaces[i]), 300)
	}
	f.Fuzz(func(t *testing.T, place int, seed, raw []byte, most int) {
		most = max(most, 0) % (64 << 10)
		in := wrapped(strings.ReplaceAll(secretPlaces[uint(place)%uint(len(secretPlaces))], "MARK", mark), seed)
		kept := records.KeepRedacted.Payload([]byte(in), most)
		if bytes.Contains(kept.JSON, []byte(mark)) || kept.SHA256 != "" {
			t.Errorf("%s\nleaves %s", in, kept.JSON)
		}
		for _, p := range []records.Policy{records.KeepRedacted, records.KeepFull} {
			kept := p.Payload(raw, most)
			if len(kept.JSON) > most || kept.JSON != nil && (!json.Valid(kept.JSON) || !utf8.Valid(kept.JSON)) {
				t.Errorf("%q by %s leaves %q in %d bytes", raw, p, kept.JSON, most)
			}
			if _, err := json.Marshal(kept); err != nil {
				t.Errorf("%q by %s: %v", raw, p, err)
			}
		}
		// What was redacted is not redacted further: nothing that is left looks like a secret.
		once := records.KeepRedacted.Payload(raw, 64<<10)
		if again := records.KeepRedacted.Payload(once.JSON, 64<<10); once.JSON != nil && bytes.Contains(again.JSON, []byte(`:"[redacted]"`)) && !bytes.Contains(once.JSON, []byte(`[redacted]`)) {
			t.Errorf("%q leaves %s, and that %s", raw, once.JSON, again.JSON)
		}
	})
}
