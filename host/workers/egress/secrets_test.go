package egress_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"openskill/host/workers/egress"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const hidden, stands = `s3cr3t/+va"l\ue=&%`, "sk-PLACEHOLDERplaceholder0123456789"

// sees is a server that keeps what it gets, and answers with it.
type sees struct {
	*httptest.Server

	mu  sync.Mutex
	got []string
}

func seeing(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, got string)) *sees {
	t.Helper()
	s := &sees{}
	s.Server = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := fmt.Sprintf("%s %s %v %s", r.Method, r.RequestURI, r.Header, body)
		s.mu.Lock()
		s.got = append(s.got, got)
		s.mu.Unlock()
		answer(w, r, string(body))
	})
	return s
}

func (s *sees) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.got, "\n")
}

func echo(w http.ResponseWriter, r *http.Request, body string) {
	w.Header().Set("X-Echo", r.Header.Get("X-Key")+r.Header.Get("Authorization"))
	_, _ = io.WriteString(w, r.RequestURI+" "+r.Header.Get("X-Key")+" "+r.Header.Get("Authorization")+" "+body)
}

// asks sends a request as a guest does.
func asks(t *testing.T, c *egress.Client, call *skill.Call, method, url string, header map[string]string, body string) string {
	t.Helper()
	head := musttest.Get(json.Marshal(map[string]any{"method": method, "url": url, "headers": header}))(t)
	return string(c.For(call)(t.Context(), append(append(head, '\n'), body...)))
}

func knows(t *testing.T, place string, to ...string) *skill.Call {
	t.Helper()
	call := &skill.Call{SkillID: "weather", Script: true}
	for _, url := range to {
		call.Grants.HTTP = append(call.Grants.HTTP, rules(t, url+" GET,POST,PUT")...)
	}
	call.Grants.Secrets = []skill.Secret{{Placeholder: stands, Value: hidden, For: rules(t, place+" GET,POST,PUT")}}
	return call
}

func TestSecretsGoToTheirHostsAlone(t *testing.T) {
	own, other := seeing(t, echo), seeing(t, echo)
	var log bytes.Buffer
	c := egress.New(&egress.Options{Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	call := knows(t, own.URL, own.URL, other.URL)
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+stands))
	for name, r := range map[string]struct {
		method, path, body string
		header             map[string]string
		sent               string
	}{
		"header":     {"GET", "/h", "", map[string]string{"X-Key": "Bearer " + stands}, "Bearer " + hidden},
		"path":       {"GET", "/p/" + stands + "/x", "", nil, "/p/s3cr3t%2F+va%22l%5Cue=&%25/x"},
		"query":      {"GET", "/q?k=" + stands, "", nil, "k=s3cr3t%2F%2Bva%22l%5Cue%3D%26%25"},
		"basic":      {"GET", "/b", "", map[string]string{"authorization": basic}, base64.StdEncoding.EncodeToString([]byte("me:" + hidden))},
		"text":       {"POST", "/t", "a " + stands + " b", map[string]string{"Content-Type": "text/plain"}, "a " + hidden + " b"},
		"json":       {"POST", "/j", `{"k":"` + stands + `"}`, map[string]string{"Content-Type": "application/json"}, `{"k":"s3cr3t/+va\"l\\ue=&%"}`},
		"form":       {"PUT", "/f", "k=" + stands + "&x=1", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "k=s3cr3t%2F%2Bva%22l%5Cue%3D%26%25&x=1"},
		"bytes":      {"POST", "/y", "\x00\xff" + stands + "\xfe" + stands, nil, "\x00\xff" + hidden + "\xfe" + hidden},
		"compressed": {"GET", "/z?k=" + stands, "", map[string]string{"Accept-Encoding": "gzip"}, "Accept-Encoding:[identity]"},
	} {
		t.Run(name, func(t *testing.T) {
			said := asks(t, c, call, r.method, own.URL+r.path, r.header, r.body)
			if !strings.Contains(own.all(), r.sent) {
				t.Errorf("the server did not get %q:\n%s", r.sent, own.all())
			}
			for _, form := range []string{hidden, "s3cr3t", base64.StdEncoding.EncodeToString([]byte("me:" + hidden))} {
				if strings.Contains(said, form) {
					t.Errorf("the guest gets %q: %q", form, said)
				}
			}
			if name != "basic" && !strings.Contains(said, stands) {
				t.Errorf("the guest does not get its placeholder back: %s", said)
			}
			said = asks(t, c, call, r.method, other.URL+r.path, r.header, r.body)
			if strings.Contains(other.all(), "s3cr3t") || strings.Contains(other.all(), base64.StdEncoding.EncodeToString([]byte("me:"+hidden))) {
				t.Errorf("the other server got it:\n%s", other.all())
			}
			if name != "basic" && !strings.Contains(said, stands) {
				t.Errorf("the other server did not get what the guest wrote: %s", said)
			}
		})
	}
	if strings.Contains(log.String(), "s3cr3t") {
		t.Errorf("the log has it:\n%s", &log)
	}
}

// A redirect is looked at by itself, and where it leads has no value.
func TestSecretsAndRedirects(t *testing.T) {
	other := seeing(t, echo)
	var target string
	own := seeing(t, func(w http.ResponseWriter, r *http.Request, body string) {
		if r.URL.Path == "/end" {
			echo(w, r, body)
			return
		}
		http.Redirect(w, r, target+"?k="+r.URL.Query().Get("k")+"&key="+r.Header.Get("X-Key"), http.StatusTemporaryRedirect)
	})
	c := egress.New(nil)
	call := knows(t, own.URL, own.URL, other.URL)
	for _, to := range []string{own.URL + "/end", other.URL + "/end"} {
		target = to
		// Spaces and quotes are not in a Location, so the value here has none.
		call.Grants.Secrets[0].Value = "s3cr3t-value"
		said := asks(t, c, call, "POST", own.URL+"/go?k="+stands, map[string]string{"X-Key": stands}, "body "+stands)
		if strings.Contains(said, "s3cr3t") || !strings.Contains(said, stands) {
			t.Errorf("to %s: %s", to, said)
		}
	}
	if strings.Contains(other.all(), "s3cr3t") || !strings.Contains(other.all(), stands) {
		t.Errorf("the other server got\n%s", other.all())
	}
	if !strings.Contains(own.all(), "/end?k=s3cr3t-value") {
		t.Errorf("the own server got\n%s", own.all())
	}
	// A redirect that is not followed.
	head := `{"url":"` + own.URL + `/go?k=` + stands + `","redirect":"manual"}` + "\n"
	if said := string(c.For(call)(t.Context(), []byte(head))); strings.Contains(said, "s3cr3t") || !strings.Contains(said, `"location"`) {
		t.Errorf("%s", said)
	}
}

func TestSecretsAreWithinTheBounds(t *testing.T) {
	s := seeing(t, echo)
	c := egress.New(&egress.Options{MaxRequest: 10_000, MaxResponse: 10_000})
	call := knows(t, s.URL, s.URL)
	call.Grants.Secrets[0].Value = strings.Repeat("v", 4096)
	for name, said := range map[string]string{
		"body":   asks(t, c, call, "POST", s.URL, nil, strings.Repeat(stands, 3)),
		"header": asks(t, c, call, "GET", s.URL, map[string]string{"X-Key": strings.Repeat(stands, 9)}, ""),
		"query":  asks(t, c, call, "GET", s.URL+"?"+stands, nil, ""),
	} {
		if !strings.Contains(said, "PAYLOAD_TOO_LARGE") {
			t.Errorf("%s: %.300s", name, said)
		}
	}
	if s.all() != "" {
		t.Errorf("sent: %.300s", s.all())
	}
	// A response that grows.
	many := seeing(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
		_, _ = io.WriteString(w, strings.Repeat("12345678", 1000))
	})
	call = knows(t, many.URL, many.URL)
	call.Grants.Secrets[0].Value = "12345678"
	if said := asks(t, c, call, "GET", many.URL, nil, ""); !strings.Contains(said, "PAYLOAD_TOO_LARGE") {
		t.Errorf("%.300s", said)
	}
}

// Servers answer in chunks, in bytes that are no text, and wrongly.
func TestSecretsInOddResponses(t *testing.T) {
	var log bytes.Buffer
	c := egress.New(&egress.Options{Log: slog.New(slog.NewJSONHandler(&log, nil))})
	chunks := seeing(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
		for i := range len(hidden) { // one byte a chunk
			_, _ = w.Write([]byte("\xff" + hidden)[i : i+1])
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, hidden[len(hidden)-1:]+"\x00")
	})
	if said := asks(t, c, knows(t, chunks.URL, chunks.URL), "GET", chunks.URL, nil, ""); strings.Contains(said, "s3cr3t") || !strings.Contains(said, "\xff"+stands+"\x00") {
		t.Errorf("%q", said)
	}
	broken := seeing(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 "+r.Header.Get("X-Key")+" no status\r\n\r\n")
	})
	call := knows(t, broken.URL, broken.URL)
	if said := asks(t, c, call, "GET", broken.URL, map[string]string{"X-Key": stands}, ""); strings.Contains(said, "s3cr3t") || !strings.Contains(said, "invalid HTTP") {
		t.Errorf("%s", said)
	}
	if strings.Contains(log.String(), "s3cr3t") {
		t.Errorf("the log has it:\n%s", &log)
	}
}

// A server may write what it got in other forms, and one value may begin with another.
func TestSecretsInOtherForms(t *testing.T) {
	const longer = hidden + "s3cr3t-too"
	var text string
	s := seeing(t, func(w http.ResponseWriter, _ *http.Request, _ string) { _, _ = io.WriteString(w, text) })
	call := knows(t, s.URL, s.URL)
	second := call.Grants.Secrets[0]
	second.Placeholder, second.Value = "sk-OTHERotherOTHERother9876543210", longer
	call.Grants.Secrets = append(call.Grants.Secrets, second)
	c := egress.New(nil)
	for _, text = range []string{
		hidden, longer, `s3cr3t\/+va\"l\\ue=&%`, `s3cr3t/+va\"l\\ue=\u0026%`, "s3cr3t%2F+va%22l%5Cue=&%25", "s3cr3t%2f%2bva%22l%5cue%3d%26%25", "s3cr3t%2F%2Bva%22l%5Cue%3D%26%25",
	} {
		if said := asks(t, c, call, "GET", s.URL, nil, ""); strings.Contains(said, "s3cr3t") {
			t.Errorf("%q gives %q", text, said)
		}
	}
}

func TestSecretsPrintAsTheirPlaceholders(t *testing.T) {
	call := knows(t, "https://api.example.com")
	text := fmt.Sprintf("%v %+v %#v %s", call.Grants, call.Grants, call.Grants, call.Grants.Secrets)
	b := musttest.Get(json.Marshal(call.Grants))(t)
	if text += string(b); strings.Contains(text, "s3cr3t") || !strings.Contains(text, stands) {
		t.Error(text)
	}
}

func TestSecretsOfTwoRunsAtOnce(t *testing.T) {
	s := seeing(t, echo)
	c := egress.New(nil)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			call := knows(t, s.URL, s.URL)
			value, stand := fmt.Sprintf("value-of-run-%02d", i), fmt.Sprintf("PLACEHOLDER%028d", i)
			call.Grants.Secrets[0].Value, call.Grants.Secrets[0].Placeholder = value, stand
			if said := asks(t, c, call, "POST", s.URL, map[string]string{"X-Key": stand}, stand); strings.Contains(said, "value-of") || !strings.Contains(said, stand) {
				t.Error(said)
			}
			if !strings.Contains(s.all(), value) {
				t.Error("the server did not get " + value)
			}
		})
	}
	all.Wait()
}
