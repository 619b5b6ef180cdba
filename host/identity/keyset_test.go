package identity_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// trip is a server of key sets without a network.
type trip struct {
	mu    sync.Mutex
	set   string
	err   error
	block chan struct{}
	asked atomic.Int64
}

func (s *trip) give(set string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set, s.err = set, err
}

func (s *trip) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	s.mu.Lock()
	set, err, block := s.set, s.err, s.block
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(set)), Request: r}, nil
}

func (s *trip) open(t *testing.T) *harness {
	t.Helper()
	return open(t, func(o *identity.Options) {
		o.KeySet, o.Issuer, o.Audience, o.Transport = "https://issuer.example/jwks?x=1", issuer, aud, s
	})
}

// shows checks whether a token is let in.
func (h *harness) shows(t *testing.T, text string, good bool) {
	t.Helper()
	p, err := h.Authenticate(t.Context(), bearer(text))
	switch {
	case good && err != nil:
		t.Errorf("refused: %v %s", err, h.log)
	case !good && (skill.CodeOf(err) != skill.Unauthorized || p.ID != ""):
		t.Errorf("%+v, %v, want it to be refused", p, err)
	}
}

// TestKeysOfAnIssuerChange: a key that is new is fetched when a token names it, one that
// is gone is no good soon after, and strangers who name keys make no more than a fetch
// every half a minute.
func TestKeysOfAnIssuerChange(t *testing.T) {
	k := issuerKeys()
	old, next := jwks(rsaJWK("one", &k.rsa.PublicKey, "")), jwks(rsaJWK("two", &k.rsa2.PublicKey, ""))
	synctest.Test(t, func(t *testing.T) {
		first := func() string { return token(t, `{"alg":"RS256","kid":"one"}`, good(), k.rsa) }
		second := func() string { return token(t, `{"alg":"RS256","kid":"two"}`, good(), k.rsa2) }
		s := &trip{set: old}
		h := s.open(t)
		if s.asked.Load() != 0 {
			t.Error("it was fetched at the start")
		}
		h.shows(t, first(), true)
		h.shows(t, second(), false)
		if n := s.asked.Load(); n != 1 {
			t.Fatalf("fetched %d times", n)
		}
		s.give(next, nil)
		time.Sleep(29 * time.Second)
		for range 50 {
			h.shows(t, second(), false)
		}
		time.Sleep(time.Second)
		var all sync.WaitGroup
		for range 50 {
			text := second()
			all.Go(func() { h.shows(t, text, true) })
		}
		all.Wait()
		h.shows(t, first(), false)
		if n := s.asked.Load(); n != 2 {
			t.Errorf("fetched %d times", n)
		}
		for range 100 {
			h.shows(t, token(t, `{"alg":"RS256","kid":"three"}`, good(), k.rsa2), false)
			time.Sleep(3 * time.Second)
		}
		if n := s.asked.Load(); n > 2+10 {
			t.Errorf("fetched %d times in five minutes", n)
		}
	})
}

// Keys stay good for an hour where they cannot be fetched, and are good again without a
// restart.
func TestIssuerGone(t *testing.T) {
	k := issuerKeys()
	set := jwks(rsaJWK("one", &k.rsa.PublicKey, ""))
	synctest.Test(t, func(t *testing.T) {
		first := func() string { return token(t, `{"alg":"RS256","kid":"one"}`, good(), k.rsa) }
		s := &trip{err: errors.New("gone")}
		h := s.open(t)
		h.shows(t, first(), false)
		s.give(set, nil)
		time.Sleep(30 * time.Second)
		h.shows(t, first(), true)
		s.give("", errors.New("gone"))
		for range 59 {
			time.Sleep(time.Minute)
			h.shows(t, first(), true)
		}
		if n := strings.Count(h.log.String(), "cannot read"); n != 2 {
			t.Errorf("the log says so %d times", n)
		}
		time.Sleep(time.Minute)
		h.shows(t, first(), false)
		s.give(`{"keys":[]}`, nil)
		time.Sleep(time.Minute)
		h.shows(t, first(), false)
		s.give(set, nil)
		time.Sleep(time.Minute)
		h.shows(t, first(), true)
	})
}

// A server that hangs holds up nobody whose key is known, and the others for five
// seconds.
func TestIssuerHangs(t *testing.T) {
	k := issuerKeys()
	synctest.Test(t, func(t *testing.T) {
		s := &trip{set: jwks(rsaJWK("one", &k.rsa.PublicKey, ""))}
		h := s.open(t)
		h.shows(t, token(t, `{"alg":"RS256","kid":"one"}`, good(), k.rsa), true)
		s.mu.Lock()
		s.block = make(chan struct{})
		s.mu.Unlock()
		time.Sleep(10 * time.Minute)
		begun := time.Now()
		h.shows(t, token(t, `{"alg":"RS256","kid":"one"}`, good("jti", "2"), k.rsa), true)
		if took := time.Since(begun); took != 0 {
			t.Errorf("a known key waited %v", took)
		}
		h.shows(t, token(t, `{"alg":"RS256","kid":"two"}`, good(), k.rsa), false)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("an unknown key waited %v", took)
		}
	})
}

// A file is read again when it has changed; a wrong one leaves the keys as they were.
func TestKeyFileChanges(t *testing.T) {
	k := issuerKeys()
	file := writeSet(t, jwks(rsaJWK("one", &k.rsa.PublicKey, "")))
	now := time.Now()
	h := open(t, func(o *identity.Options) {
		o.KeySet, o.Issuer, o.Audience, o.Now = file, issuer, aud, func() time.Time { return now }
	})
	write := func(text string) {
		t.Helper()
		now = now.Add(10 * time.Second) // what was verified is forgotten
		musttest.Do(t, os.WriteFile(file+".new", []byte(text), 0o600))
		musttest.Do(t, os.Rename(file+".new", file))
	}
	first := token(t, `{"alg":"RS256","kid":"one"}`, good(), k.rsa)
	second := token(t, `{"alg":"RS256","kid":"two"}`, good(), k.rsa2)
	h.shows(t, first, true)
	write(jwks(rsaJWK("two", &k.rsa2.PublicKey, "")))
	h.shows(t, second, true) // its kid is not known, so that the file is looked at
	now = now.Add(10 * time.Second)
	h.shows(t, first, false)
	write("{")
	h.shows(t, first, false) // which looks at the file
	h.shows(t, second, true)
	if !strings.Contains(h.log.String(), "cannot read the JWT key set") {
		t.Errorf("the log says %s", h.log)
	}
	now = now.Add(2 * time.Hour)
	h.shows(t, token(t, `{"alg":"RS256","kid":"two"}`, good("exp", now.Unix()+60), k.rsa2), false)
	write(jwks(rsaJWK("one", &k.rsa.PublicKey, "")))
	h.shows(t, token(t, `{"alg":"RS256","kid":"one"}`, good("exp", now.Unix()+60), k.rsa), true)
}

// Key sets that must not be used stop the start.
func TestWrongKeySets(t *testing.T) {
	k := issuerKeys()
	one := rsaJWK("one", &k.rsa.PublicKey, "")
	for name, c := range map[string]struct{ set, why string }{
		"empty file":        {"", "not a valid key set"},
		"no keys":           {jwks(), "no key for RS256"},
		"another object":    {`{"issuer":"x"}`, "no key for RS256"},
		"keys twice":        {`{"keys":[` + one + `],"keys":[]}`, "more than once"},
		"a member twice":    {strings.Replace(jwks(one), `"kty":"RSA"`, `"kty":"RSA","kty":"RSA"`, 1), "more than once"},
		"no list":           {`{"keys":{}}`, "not a valid key set"},
		"null":              {`{"keys":[null]}`, "JSON object"},
		"a secret":          {jwks(one, `{"kty":"oct","k":"c2VjcmV0"}`), "secret or private"},
		"a private key":     {jwks(one, strings.Replace(one, `"kty"`, `"d":"AQAB","kty"`, 1)), "secret or private"},
		"two of one kid":    {jwks(one, rsaJWK("one", &k.rsa2.PublicKey, "")), "duplicate kid"},
		"65 keys":           {jwks(strings.Split(strings.Repeat(`{},`, 65)+"{}", ",")...), "more than 64"},
		"x is a number":     {jwks(rsaJWK("one", &k.rsa.PublicKey, `,"x":1`)), "wrong type"},
		"of RS512":          {jwks(rsaJWK("one", &k.rsa.PublicKey, `,"alg":"RS512"`)), "no key for RS256"},
		"1024 bits":         {jwks(`{"kty":"RSA","n":"` + b64.EncodeToString(bytes.Repeat([]byte{0xff}, 128)) + `","e":"AQAB"}`), "2048 to 8192"},
		"16384 bits":        {jwks(`{"kty":"RSA","n":"` + b64.EncodeToString(bytes.Repeat([]byte{0xff}, 2048)) + `","e":"AQAB"}`), "2048 to 8192"},
		"exponent 1":        {jwks(strings.Replace(one, `"e":"AQAB"`, `"e":"AQ"`, 1)), "not a valid RSA key"},
		"off the curve":     {jwks(`{"kty":"EC","crv":"P-256","x":"` + b64.EncodeToString(make([]byte, 32)) + `","y":"` + b64.EncodeToString(make([]byte, 32)) + `"}`), "not a point"},
		"half a point":      {jwks(`{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`), "32 bytes"},
		"half an Ed25519":   {jwks(`{"kty":"OKP","crv":"Ed25519","x":"AA"}`), "32 bytes"},
		"300 KiB":           {jwks(one) + strings.Repeat(" ", 300<<10), "more than"},
		"behind it":         {jwks(one) + "{}", "nothing after"},
		"no base64":         {jwks(`{"kty":"RSA","n":"!","e":"AQAB"}`), "base64url"},
		"a kid of a number": {jwks(strings.Replace(one, `"kid":"one"`, `"kid":1`, 1)), "wrong type"},
	} {
		_, err := identity.New(identity.Options{KeySet: writeSet(t, c.set), Issuer: issuer, Audience: aud})
		if skill.CodeOf(err) != skill.InvalidArgument || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
}

// TestKeyServer fetches over real HTTP: what is no key set of the server that was named
// gives no keys.
func TestKeyServer(t *testing.T) {
	k := issuerKeys()
	set := jwks(rsaJWK("one", &k.rsa.PublicKey, ""))
	text := token(t, `{"alg":"RS256","kid":"one"}`, good(), k.rsa)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("a redirect was followed")
		fmt.Fprint(w, set)
	}))
	t.Cleanup(elsewhere.Close)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		good   bool
	}{
		"a key set":       {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, set) }, true},
		"a redirect":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, false},
		"an error":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); fmt.Fprint(w, set) }, false},
		"without an end":  {func(w http.ResponseWriter, _ *http.Request) { endless(w, set) }, false},
		"compressed zero": {func(w http.ResponseWriter, _ *http.Request) { compressed(w) }, false},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(set)+1))
			fmt.Fprint(w, set)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			t.Cleanup(server.Close)
			h := open(t, func(o *identity.Options) { o.KeySet, o.Issuer, o.Audience = server.URL, issuer, aud })
			h.shows(t, text, c.good)
		})
	}
}

func endless(w io.Writer, set string) {
	for {
		if _, err := io.WriteString(w, set+strings.Repeat(" ", 64<<10)); err != nil {
			return
		}
	}
}

func compressed(w http.ResponseWriter) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 64<<20))
	_ = z.Close()
}
