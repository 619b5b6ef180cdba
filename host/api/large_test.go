package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// ask answers a request from within, with a body that is not copied, and gives the bytes that
// were allocated for it.
func (w *world) ask(t *testing.T, key, path string) (allocated uint64, body []byte) {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), "GET", path, nil))(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := w.Do(t.Context(), w.keys[key], req)
	runtime.ReadMemStats(&after)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	musttest.Get(b.ReadFrom(resp.Body))(t)
	return after.TotalAlloc - before.TotalAlloc, b.Bytes()
}

// Reading a stored result took a tenth of a second of a processor, since it was read as JSON
// and written as JSON again: it is given as the bytes that were stored.
func TestStoredResultsAreGivenAsTheyAre(t *testing.T) {
	w := newWorld(t)
	w.keys["one"] = tenant("one", all()...)
	const size = 16 << 20
	stored := `{"success" : true, "data": "` + strings.Repeat("x", size) + `"}` // nobody else writes a space there
	id := w.keep(t, "one", "", []byte(stored))
	allocated, body := w.ask(t, "one", "/executions/"+id)
	if !bytes.HasSuffix(body, []byte(`,"result":`+stored+"}\n")) {
		t.Errorf("it is written anew: %.80s … %s", body, body[len(body)-40:])
	}
	if allocated > 3*size+size/2 { // the driver hands over its parts, they become one, the answer has it
		t.Errorf("%d MiB are allocated to give %d", allocated>>20, size>>20)
	}
}

// The data of a long result goes out as the skill wrote it, at once and when it was stored.
func TestLongDataIsNotWrittenAnew(t *testing.T) {
	w := newWorld(t)
	w.keys["one"] = tenant("one", all()...)
	data := `{"text" : "` + strings.Repeat("<é", 1<<20) + `"}`
	w.Door.Add("echo", func(context.Context, skill.Request) (json.RawMessage, error) { return json.RawMessage(data), nil })
	resp, body := w.as(t, "one", "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`)
	if resp.StatusCode != 200 || !bytes.Contains(body, []byte(`"data":`+data+`,"error":null,"meta":{`)) || !bytes.HasSuffix(body, []byte("}\n")) {
		t.Errorf("%d %.200s", resp.StatusCode, body)
	}
	_, body = w.as(t, "one", "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`, "Prefer", "respond-async")
	var accepted struct{ ID string }
	musttest.Do(t, json.Unmarshal(body, &accepted))
	within(t, "the end of the call", func() bool {
		_, body = w.as(t, "one", "GET", "/executions/"+accepted.ID, "")
		return bytes.Contains(body, []byte(`"result":`))
	})
	if !bytes.Contains(body, []byte(`"data":`+data+`,"error":null,"meta":{`)) {
		t.Errorf("stored: %.400s", body)
	}
}

// Of a long result who asks for its beginning gets that, of which no more than that is read.
func TestTheBeginningOfAResultIsAllThatIsRead(t *testing.T) {
	w := newWorld(t)
	w.keys["one"] = tenant("one", all()...)
	const size = 8 << 20
	long := w.keep(t, "one", "", []byte(`{"success":true,"data":"`+strings.Repeat("é", size/2)+`"}`))
	short := w.keep(t, "one", "", []byte(`{"success":true,"skill_id":"echo","trace_id":"t","data":1,"error":null,"meta":{}}`))
	allocated, body := w.ask(t, "one", "/executions/"+long+"?result=head")
	var got struct {
		Result *json.RawMessage
		Head   string `json:"result_head"`
		Bytes  int    `json:"result_bytes"`
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Result != nil || got.Bytes != size+26 ||
		!strings.HasPrefix(got.Head, `{"success":true,"data":"éé`) || !utf8.ValidString(got.Head) || strings.Contains(got.Head, "\ufffd") || len(got.Head) < 64<<10-1 || len(got.Head) > 64<<10 {
		t.Errorf("%v: %d bytes, head of %d", err, got.Bytes, len(got.Head))
	}
	if allocated > 2<<20 { // the driver hands over one part of it, of 1 MiB
		t.Errorf("%d KiB are allocated for the beginning", allocated>>10)
	}
	for _, query := range []string{"", "?result=full", "?result=head"} {
		if _, body := w.ask(t, "one", "/executions/"+short+query); !bytes.Contains(body, []byte(`"data":1`)) || bytes.Contains(body, []byte("result_")) {
			t.Errorf("a short one: %s", body)
		}
	}
	if resp, body := w.as(t, "one", "DELETE", "/executions/"+long, ""); resp.StatusCode != 200 || !bytes.Contains(body, []byte(`"result_bytes":`)) || len(body) > 1<<17 {
		t.Errorf("DELETE of one that has ended: %d, %d bytes", resp.StatusCode, len(body))
	}
	for _, query := range []string{"?result=", "?result=tail", "?result=head&result=head"} {
		if resp, _ := w.as(t, "one", "GET", "/executions/"+short+query, ""); resp.StatusCode != 400 {
			t.Errorf("%s: %d", query, resp.StatusCode)
		}
	}
	if resp, body := w.as(t, "one", "GET", "/executions/"+long+"?result=head", ""); resp.StatusCode != 200 { // by the contract
		t.Errorf("%d %.100s", resp.StatusCode, body)
	}
}
