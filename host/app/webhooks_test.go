package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"openskill/host/app/config"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A call that names a webhook tells it of its end, over the network, signed; the receiver finds the result by the id that it is told.
func TestWebhooks(t *testing.T) {
	got := make(chan *http.Request, 4)
	bodies := make(chan []byte, 4)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bodies <- musttest.Get(io.ReadAll(r.Body))(t)
		got <- r
		http.Redirect(w, r, "/elsewhere", http.StatusFound) // which is not followed
	}))
	defer receiver.Close()
	s := settings(t, map[string]string{"webhooks": "https://hooks.example.com, " + receiver.URL})
	addSkills(t, s.SkillsDir, map[string]string{"hello": `{"said": "hello"}`})
	w := serve(t, s)
	post := func(path, body string) (int, []byte) {
		t.Helper()
		req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body)))(t)
		res := musttest.Get(http.DefaultClient.Do(req))(t)
		defer res.Body.Close()
		return res.StatusCode, musttest.Get(io.ReadAll(res.Body))(t)
	}
	for _, url := range []string{
		"http://127.0.0.1:1/", "https://other.example.com/", receiver.URL + "/../", receiver.URL + "/#part", "http://user@" + strings.TrimPrefix(receiver.URL, "http://") + "/",
		"https://hooks.example.com:444/", "http://hooks.example.com/", "file:///etc/passwd", "https://hooks.example.com.evil.example/", "",
	} {
		if status, body := post("/webhooks", fmt.Sprintf(`{"name":"a","url":%q}`, url)); status != http.StatusBadRequest && status != http.StatusForbidden {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
	var hook skill.Webhook
	if status, body := post("/webhooks", fmt.Sprintf(`{"name":"done","url":"%s/path?key=1"}`, receiver.URL)); status != http.StatusCreated || json.Unmarshal(body, &hook) != nil {
		t.Fatalf("%d %s", status, body)
	}
	var accepted skill.Accepted
	for end := time.Now().Add(time.Minute); accepted.ID == "" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // the host begins to work a moment after it listens
		if status, body := post("/skills/hello:invoke", `{"input":{"text":"x"},"webhook":"done"}`); status == http.StatusAccepted {
			musttest.Do(t, json.Unmarshal(body, &accepted))
		}
	}
	var r *http.Request
	select {
	case r = <-got:
	case <-time.After(time.Minute):
		t.Fatal("the webhook is not told")
	}
	body := <-bodies
	key := musttest.Get(base64.StdEncoding.DecodeString(strings.TrimPrefix(hook.Secret, "whsec_")))(t)
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("Webhook-Signature") != want || r.Header.Get("Webhook-Id") != accepted.ID || r.URL.String() != "/path?key=1" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", r.URL, r.Header)
	}
	if !strings.Contains(string(body), `"id":"`+accepted.ID+`"`) || !strings.Contains(string(body), `"status":"success"`) {
		t.Errorf("%s", body)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		res := musttest.Get(http.Get(w.url + "/webhooks/done"))(t)
		body := musttest.Get(io.ReadAll(res.Body))(t)
		_ = res.Body.Close()
		if strings.Contains(string(body), `"last_status":302`) && strings.Contains(string(body), `"waiting":1`) && !strings.Contains(string(body), "whsec_") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s", body)
		}
	}
}

// Where all public addresses are permitted, those of private networks are not.
func TestPublicWebhooks(t *testing.T) {
	h := &Host{settings: &config.Settings{Webhooks: "public"}}
	for url, want := range map[string]skill.Code{
		"https://hooks.example.com/": "", "https://192.0.2.1.example.com/": "", "https://8.8.8.8/": "",
		"http://hooks.example.com/": skill.NetworkDenied, "https://127.0.0.1/": skill.NetworkDenied, "https://[::1]/": skill.NetworkDenied,
		"https://169.254.169.254/latest": skill.NetworkDenied, "https://10.0.0.1/": skill.NetworkDenied, "https://[fd00::1]/": skill.NetworkDenied,
	} {
		if err := h.post().Permits(url); skill.CodeOf(err) != want {
			t.Errorf("%s: %v", url, err)
		}
	}
	if status, err := h.post().Send(t.Context(), "https://localhost/", nil, nil); skill.CodeOf(err) != skill.NetworkDenied {
		t.Errorf("a name of this machine: %d, %v", status, err)
	}
	if (&Host{settings: &config.Settings{}}).post() != nil {
		t.Error("they are on by default")
	}
}
