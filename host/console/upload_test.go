package console

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An upload goes to the API as it comes in: with its files alone, and not without the token.
func TestUploads(t *testing.T) {
	f := open(t, nil)
	f.answers["POST /skills"] = `{"id":"x","version":"1.0.0","digest":"","state":"disabled","report":{"verdict":"accepted","warnings":["<b>careful</b>"]}}`
	f.answers["POST /skills/x:enable"] = `{"id":"x","version":"1.0.0","digest":"","state":"enabled"}`
	v := f.signedIn(t, "operator")
	send := func(token string, extra bool) *httptest.ResponseRecorder {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		if token != "" {
			_ = w.WriteField("csrf", token)
		}
		p, _ := w.CreateFormFile("archive", "a\"\r\nX: y.zip")
		_, _ = io.WriteString(p, "the bytes")
		if extra {
			_ = w.WriteField("enable", "yes")
			_ = w.WriteField("other", "left out")
			_, _ = w.CreateFormFile("module", "")
		}
		_ = w.Close()
		return v.do(t, "POST", "/console/upload", w.FormDataContentType(), b.String())
	}
	own := v.csrf
	for _, token := range []string{"", "wrong", strings.Repeat("x", 1000)} {
		if w := send(token, false); w.Code != 403 && w.Code != 400 {
			t.Errorf("token %.10q: %d", token, w.Code)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("the API was asked: %q", f.asked)
	}
	w := send(own, true)
	if body := w.Body.String(); w.Code != 201 || !strings.Contains(body, "is there, and enabled") || !strings.Contains(body, "&lt;b&gt;careful") {
		t.Errorf("%d %s", w.Code, body)
	}
	if sent := f.asked[0]; !strings.Contains(sent, "the bytes") || strings.Contains(sent, "left out") || strings.Contains(sent, own) || strings.Contains(sent, "\r\nX: y") || strings.Count(sent, "form-data") != 1 {
		t.Errorf("sent %s", sent)
	}
	f.answers["POST /skills"] = `422 {"error":{"code":"MODULE_REJECTED","status":422,"message":"no <i>good</i>","details":{"report":{"verdict":"refused","refused":[{"file":"m.wasm","line":3,"code":"MODULE_REJECTED","message":"bad \u202e"}]}}}}`
	if body := send(own, false).Body.String(); !strings.Contains(body, "no &lt;i&gt;good") || !strings.Contains(body, "m.wasm:3") || !strings.Contains(body, "bad ‹U+202E›") {
		t.Errorf("refused: %s", body)
	}
	reader := f.signedIn(t, "reader")
	v, own = reader, reader.csrf
	if w := send(own, false); w.Code != 403 {
		t.Errorf("by a reader: %d", w.Code)
	}
	for _, body := range []string{"", "--x\r\n", "--x--"} {
		if w := v.do(t, "POST", "/console/upload", "multipart/form-data; boundary=x", body); w.Code >= 500 {
			t.Errorf("%q: %d", body, w.Code)
		}
	}
}

// What comes before a part is kept in memory by who reads it, and so there is not much of
// it, neither before the token nor after.
func TestLongHeadsOfParts(t *testing.T) {
	f := open(t, nil)
	f.answers["POST /skills"] = `{"id":"x","version":"1.0.0","digest":"","state":"disabled"}`
	v := f.signedIn(t, "operator")
	long := "--x\r\nX-A: " + strings.Repeat("a", 1<<20)
	token := "--x\r\nContent-Disposition: form-data; name=csrf\r\n\r\n" + v.csrf + "\r\n"
	for name, body := range map[string]string{
		"the first":             long,
		"a head of many lines":  "--x\r\n" + strings.Repeat("X-A: a\r\n", 1<<17),
		"before the first":      strings.Repeat("a", 1<<20) + "\r\n" + token,
		"one behind the token":  token + long,
		"a field for nobody":    token + "--x\r\nContent-Disposition: form-data; name=other\r\n\r\n" + strings.Repeat("a", 1<<20) + "\r\n--x--",
		"a token that is long":  "--x\r\nContent-Disposition: form-data; name=csrf\r\n\r\n" + strings.Repeat("a", 1<<20) + "\r\n--x--",
		"a flag that is no yes": token + "--x\r\nContent-Disposition: form-data; name=enable\r\n\r\n" + strings.Repeat("a", 1<<20) + "\r\n--x--",
	} {
		in := &taken{r: strings.NewReader(body)}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/console/upload", in)
		r.Host = "localhost:8000"
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		r.AddCookie(v.cookie)
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		want := http.StatusBadRequest
		if strings.HasPrefix(name, "a token") {
			want = http.StatusForbidden
		}
		if w.Code != want || in.n > 64<<10 {
			t.Errorf("%s: %d after %d bytes", name, w.Code, in.n)
		}
	}
}

// taken counts what was read.
type taken struct {
	r io.Reader
	n int
}

func (c *taken) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}
