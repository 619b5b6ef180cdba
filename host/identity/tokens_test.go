package identity_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

const (
	secret = "a secret of HS256, with more than 32 bytes"
	issuer = "https://issuer.example"
	aud    = "openskill"
)

var b64 = base64.RawURLEncoding

// issuerKeys are those of a key set, made once.
var issuerKeys = sync.OnceValue(func() (k struct {
	rsa, rsa2 *rsa.PrivateKey
	ec        *ecdsa.PrivateKey
	ed        ed25519.PrivateKey
},
) {
	var err [4]error
	k.rsa, err[0] = rsa.GenerateKey(rand.Reader, 2048)
	k.rsa2, err[1] = rsa.GenerateKey(rand.Reader, 2048)
	k.ec, err[2] = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, k.ed, err[3] = ed25519.GenerateKey(rand.Reader)
	for _, err := range err {
		if err != nil {
			panic(err)
		}
	}
	return k
})

// The keys as a key set has them.

func rsaJWK(kid string, k *rsa.PublicKey, more string) string {
	return fmt.Sprintf(`{"kty":"RSA","kid":%q,"use":"sig","n":%q,"e":%q%s}`, kid, b64.EncodeToString(k.N.Bytes()), b64.EncodeToString(big.NewInt(int64(k.E)).Bytes()), more)
}

func ecJWK(t testing.TB, kid string, k *ecdsa.PublicKey) string {
	t.Helper()
	p := musttest.Get(k.Bytes())(t)
	return fmt.Sprintf(`{"kty":"EC","kid":%q,"alg":"ES256","crv":"P-256","x":%q,"y":%q}`, kid, b64.EncodeToString(p[1:33]), b64.EncodeToString(p[33:]))
}

func edJWK(kid string, k ed25519.PublicKey) string {
	return fmt.Sprintf(`{"kty":"OKP","kid":%q,"crv":"Ed25519","x":%q,"key_ops":["verify"]}`, kid, b64.EncodeToString(k))
}

func jwks(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

func wholeSet(t testing.TB) string {
	t.Helper()
	k := issuerKeys()
	return jwks(rsaJWK("rsa", &k.rsa.PublicKey, `,"alg":"RS256"`), rsaJWK("rsa2", &k.rsa2.PublicKey, ""),
		ecJWK(t, "ec", &k.ec.PublicKey), edJWK("ed", k.ed.Public().(ed25519.PublicKey)),
		`{"kty":"oct","kid":"odd"}`, `{"kty":"RSA","use":"enc","kid":"enc","n":"","e":""}`)
}

// token signs a header and claims as they are written.
func token(t testing.TB, header, claims string, key any) string {
	t.Helper()
	text := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(claims))
	var h struct{ Alg string }
	musttest.Do(t, json.Unmarshal([]byte(header), &h))
	m := jwt.GetSigningMethod(h.Alg)
	if m == nil {
		m = jwt.SigningMethodHS256
	}
	if b, ok := key.([]byte); ok && !strings.HasPrefix(h.Alg, "HS") {
		return text + "." + b64.EncodeToString(b) // a signature that is none
	}
	signature := musttest.Get(m.Sign(text, key))(t)
	return text + "." + b64.EncodeToString(signature)
}

const hs = `{"alg":"HS256","typ":"JWT"}`

// good are claims that are accepted; "name", value pairs replace or, with nil, remove.
func good(pairs ...any) string {
	now := time.Now().Unix()
	m := map[string]any{"iss": issuer, "aud": aud, "sub": "ann", "tenant": "acme", "scope": "skills:read skills:invoke:echo made:up", "exp": now + 600, "iat": now, "nbf": now}
	for i := 0; i < len(pairs); i += 2 {
		if name := pairs[i].(string); pairs[i+1] == nil {
			delete(m, name)
		} else {
			m[name] = pairs[i+1]
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// raw are claims with one of them as it is written.
func raw(name, value string) string {
	return strings.Replace(good(name, nil), "{", fmt.Sprintf(`{%q:%s,`, name, value), 1)
}

func bearer(text string) identity.Credentials {
	return identity.Credentials{Authorization: []string{"Bearer " + text}}
}

// harness is an authenticator of tokens with its log.
type harness struct {
	*identity.Authenticator
	log *lines
}

// lines is a log that goroutines of the package write to.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

func open(t testing.TB, change func(o *identity.Options)) *harness {
	t.Helper()
	h := &harness{log: &lines{}}
	o := identity.Options{Log: slog.New(slog.NewJSONHandler(h.log, nil))}
	change(&o)
	var err error
	if h.Authenticator, err = identity.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func openTokens(t testing.TB) *harness {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jwks.json")
	musttest.Do(t, os.WriteFile(file, []byte(wholeSet(t)), 0o600))
	return open(t, func(o *identity.Options) {
		o.Secret, o.KeySet, o.Issuer, o.Audience, o.Skew = secret, file, issuer, aud, 30*time.Second
	})
}

// refusal is what whoever is refused reads.
func refusal(t testing.TB) *skill.Error {
	t.Helper()
	_, err := open(t, func(*identity.Options) {}).Authenticate(t.Context(), identity.Credentials{})
	var e *skill.Error
	if !errors.As(err, &e) || e.Code != skill.Unauthorized || len(e.Message) > skill.MaxMessage {
		t.Fatalf("got %v", err)
	}
	return e
}

// TestForgedTokens is case A01: every token of the list is refused with the same words,
// for the reason that it was made for.
func TestForgedTokens(t *testing.T) {
	k := issuerKeys()
	hmac := func(claims string) string { return token(t, hs, claims, []byte(secret)) }
	now := time.Now().Unix()
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: musttest.Get(x509.MarshalPKIXPublicKey(&k.rsa.PublicKey))(t)})
	ours := hmac(good())
	parts := strings.Split(ours, ".")
	der := func(header, claims string) string {
		text := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(claims))
		sum := crypto.SHA256.New()
		sum.Write([]byte(text))
		return text + "." + b64.EncodeToString(musttest.Get(ecdsa.SignASN1(rand.Reader, k.ec, sum.Sum(nil)))(t))
	}
	strange := musttest.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	forged := map[string]string{
		"alg none":                       token(t, `{"alg":"none"}`, good(), jwt.UnsafeAllowNoneSignatureType),
		"alg nOnE":                       token(t, `{"alg":"nOnE"}`, good(), []byte{}),
		"HS256 with the public RSA key":  token(t, `{"alg":"HS256","kid":"rsa"}`, good(), publicPEM),
		"another secret":                 token(t, hs, good(), []byte(strings.ToUpper(secret))),
		"claims changed after signing":   parts[0] + "." + b64.EncodeToString([]byte(good("tenant", "other"))) + "." + parts[2],
		"expired":                        hmac(good("exp", now-31)),
		"no exp":                         hmac(good("exp", nil)),
		"not valid yet":                  hmac(good("nbf", now+60)),
		"another issuer":                 hmac(good("iss", issuer+"/")),
		"another audience":               hmac(good("aud", []string{"other", aud + "2"})),
		"unknown crit":                   token(t, `{"alg":"HS256","crit":["x"],"x":1}`, good(), []byte(secret)),
		"its own key in the header":      token(t, `{"alg":"RS256","jku":"http://127.0.0.1:1/","jwk":`+rsaJWK("own", &strange.PublicKey, "")+`,"kid":"own"}`, good(), strange),
		"signature left out":             parts[0] + "." + parts[1] + ".",
		"issued in the future":           hmac(good("iat", now+60)),
		"no issuer":                      hmac(good("iss", nil)),
		"no audience":                    hmac(good("aud", nil)),
		"no tenant":                      hmac(good("tenant", nil)),
		"tenant local":                   hmac(good("tenant", "local")),
		"tenant Anonymous":               hmac(good("tenant", "Anonymous")),
		"tenant *":                       hmac(good("tenant", "*")),
		"no subject":                     hmac(good("sub", "")),
		"subject local":                  hmac(good("sub", "local")),
		"subject of a key":               hmac(good("sub", "Key:abcdefghijklmnop")),
		"subject with invisible text":    hmac(good("sub", "ann\u200b")),
		"subject with a joiner":          hmac(good("sub", "中\u200d文")),
		"subject with a selector":        hmac(good("sub", "ann\ufe0f")),
		"subject of 201 bytes":           hmac(good("sub", strings.Repeat("a", 201))),
		"tenant twice":                   hmac(strings.Replace(good(), "{", `{"tenant":"other",`, 1)),
		"Tenant beside tenant":           hmac(strings.Replace(good(), "{", `{"Tenant":"other",`, 1)),
		"alg twice":                      token(t, `{"alg":"HS256","alg":"HS256"}`, good(), []byte(secret)),
		"kid of another algorithm":       token(t, `{"alg":"ES256","kid":"rsa"}`, good(), k.ec),
		"unknown kid":                    token(t, `{"alg":"RS256","kid":"rsa3"}`, good(), k.rsa),
		"RS256 of another key":           token(t, `{"alg":"RS256","kid":"rsa"}`, good(), strange),
		"RS512 with the right key":       token(t, `{"alg":"RS512","kid":"rsa"}`, good(), k.rsa),
		"PS256 with the right key":       token(t, `{"alg":"PS256","kid":"rsa"}`, good(), k.rsa),
		"HS512 with the right secret":    token(t, `{"alg":"HS512"}`, good(), []byte(secret)),
		"ES256 of zeros":                 token(t, `{"alg":"ES256","kid":"ec"}`, good(), make([]byte, 64)),
		"ES256 in DER":                   der(`{"alg":"ES256","kid":"ec"}`, good()),
		"EdDSA with a key of RSA":        token(t, `{"alg":"EdDSA","kid":"rsa"}`, good(), k.ed),
		"exp as a string":                hmac(good("exp", fmt.Sprint(now+600))),
		"exp of 1e300":                   hmac(raw("exp", "1e300")),
		"exp null":                       hmac(raw("exp", "null")),
		"exp negative":                   hmac(raw("exp", "-1")),
		"scope as a number":              hmac(good("scope", 1)),
		"scope with a number in a list":  hmac(good("scope", []any{"admin", 1})),
		"audience with null":             hmac(raw("aud", `[null,"`+aud+`"]`)),
		"claims are a list":              hmac(`[]`),
		"four parts":                     ours + "." + parts[2],
		"five parts":                     ours + "." + parts[1] + "." + parts[2],
		"padded base64":                  ours + "=",
		"signature of another spelling":  ours[:len(ours)-1] + other(ours[len(ours)-1]),
		"of another type":                token(t, `{"alg":"HS256","typ":"logout+jwt"}`, good(), []byte(secret)),
		"b64 false":                      token(t, `{"alg":"HS256","b64":false}`, good(), []byte(secret)),
		"nine KiB":                       hmac(good("x", strings.Repeat("x", 9<<10))),
		"header of two KiB":              token(t, `{"alg":"HS256","x":"`+strings.Repeat("x", 2<<10)+`"}`, good(), []byte(secret)),
		"one part":                       parts[0],
		"broken UTF-8 in the tenant":     hmac(raw("tenant", "\"a\xff\"")),
		"RS256 without kid, of two keys": token(t, `{"alg":"RS256"}`, good(), k.rsa),
		"last word of the first one":     ours + " " + parts[2],
	}
	listed := regexp.MustCompile(`(?m)^A01-[0-9]+ (.+?)  +(\S.*)$`).FindAllStringSubmatch(string(musttest.Get(os.ReadFile("testdata/forged.txt"))(t)), -1)
	want := refusal(t)
	for _, line := range listed {
		name, why := line[1], line[2]
		text, ok := forged[name]
		if !ok {
			t.Errorf("%s is listed, and not made", name)
			continue
		}
		delete(forged, name)
		t.Run(name, func(t *testing.T) {
			h := openTokens(t)
			for range 2 { // nothing is remembered of what was refused
				h.log.Reset()
				p, err := h.Authenticate(t.Context(), bearer(text))
				if diff := cmp.Diff(want, err); diff != "" || p.ID != "" {
					t.Errorf("%+v, another answer: %s", p, diff)
				}
				if log := h.log.String(); !strings.Contains(log, `"reason":"`+why) || strings.Contains(log, text[len(text)-6:]) {
					t.Errorf("the log says %s, want %q", log, why)
				}
			}
		})
	}
	if len(forged) > 0 {
		t.Errorf("made, and not listed: %v", slices.Sorted(maps.Keys(forged)))
	}
	if len(listed) < 12 {
		t.Errorf("%d are listed", len(listed))
	}
}

// other is the next character, which encodes the same bytes where readers are lenient.
func other(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)+1])
}

func TestTokens(t *testing.T) {
	k := issuerKeys()
	h := openTokens(t)
	now := time.Now().Unix()
	ann := skill.Principal{ID: "ann", Type: skill.Human, Tenant: "acme", Scopes: []string{"skills:read", "skills:invoke:echo"}}
	for name, text := range map[string]string{
		"HS256":                          token(t, hs, good(), []byte(secret)),
		"RS256":                          token(t, `{"alg":"RS256","kid":"rsa"}`, good(), k.rsa),
		"RS256 with a key without alg":   token(t, `{"alg":"RS256","kid":"rsa2","typ":"at+jwt"}`, good(), k.rsa2),
		"ES256":                          token(t, `{"alg":"ES256","kid":"ec"}`, good(), k.ec),
		"EdDSA":                          token(t, `{"kid":"ed","alg":"EdDSA"}`, good(), k.ed),
		"EdDSA without kid, of one key":  token(t, `{"alg":"EdDSA"}`, good(), k.ed),
		"HS256 with a kid":               token(t, `{"alg":"HS256","kid":"whatever"}`, good(), []byte(secret)),
		"several audiences":              token(t, hs, good("aud", []string{"x", aud}), []byte(secret)),
		"expired within the skew":        token(t, hs, good("exp", now-20), []byte(secret)),
		"not valid yet, within the skew": token(t, hs, good("nbf", now+20, "iat", now+20), []byte(secret)),
		"times with fractions":           token(t, hs, raw("exp", fmt.Sprintf("%d.5", now+60)), []byte(secret)),
		"without nbf and iat":            token(t, hs, good("nbf", nil, "iat", nil), []byte(secret)),
		"scope as a list":                token(t, hs, good("scope", []string{"skills:read", "skills:invoke:echo", "skills:read admin"}), []byte(secret)),
		"a scope twice":                  token(t, hs, good("scope", "skills:read skills:invoke:echo skills:read"), []byte(secret)),
		"members that nobody knows":      token(t, `{"alg":"HS256","x5t":"x","jku":"http://127.0.0.1:1/"}`, good("roles", []string{"admin"}, "scp", "admin"), []byte(secret)),
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time it is known
				p, err := h.Authenticate(t.Context(), bearer(text))
				if err != nil {
					t.Fatal(err, h.log)
				}
				if p.Until.Before(time.Now().Add(-time.Minute)) || p.Until.After(time.Now().Add(time.Hour)) {
					t.Errorf("it is good until %s", p.Until)
				}
				p.Until = time.Time{}
				if diff := cmp.Diff(ann, p); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	p, err := h.Authenticate(t.Context(), bearer(token(t, hs, good("scope", nil), []byte(secret))))
	if err != nil || p.Scopes != nil {
		t.Errorf("without scope: %+v, %v", p, err)
	}
}

// A token that was verified is not remembered beyond its end.
func TestTokenEnds(t *testing.T) {
	now := time.Now()
	h := open(t, func(o *identity.Options) {
		o.Secret, o.Issuer, o.Audience, o.Now = secret, issuer, aud, func() time.Time { return now }
	})
	c := bearer(token(t, hs, good("exp", now.Unix()+2), []byte(secret)))
	musttest.Get(h.Authenticate(t.Context(), c))(t)
	now = now.Add(3 * time.Second)
	if _, err := h.Authenticate(t.Context(), c); skill.CodeOf(err) != skill.Unauthorized {
		t.Errorf("after its end: %v", err)
	}
}

// A host that accepts no tokens of a kind says the same as of wrong ones.
func TestKindsThatAreNotAccepted(t *testing.T) {
	want := refusal(t)
	text := token(t, hs, good(), []byte(secret))
	for name, h := range map[string]*harness{
		"nothing":  open(t, func(*identity.Options) {}),
		"anybody":  open(t, func(o *identity.Options) { o.Anonymous = []string{skill.ScopeRead} }),
		"key sets": open(t, func(o *identity.Options) { o.KeySet, o.Issuer, o.Audience = writeSet(t, wholeSet(t)), issuer, aud }),
	} {
		for _, shown := range []identity.Credentials{bearer(text), bearer("osk_aaaaaaaaaaaaaaaa_x"), {APIKey: []string{"osk_"}}} {
			_, err := h.Authenticate(t.Context(), shown)
			if diff := cmp.Diff(want, err); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

func writeSet(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jwks.json")
	musttest.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestWrongOptions(t *testing.T) {
	for name, o := range map[string]identity.Options{
		"short secret":       {Secret: strings.Repeat("x", 31), Issuer: issuer, Audience: aud},
		"no issuer":          {KeySet: writeSet(t, wholeSet(t)), Audience: aud},
		"no audience":        {KeySet: writeSet(t, wholeSet(t)), Issuer: issuer},
		"neither, and both":  {Secret: secret, KeySet: writeSet(t, wholeSet(t))},
		"a reserved tenant":  {Secret: secret, Tenant: "Local"},
		"nobody's tenant":    {Secret: secret, Tenant: "anonymous"},
		"a wrong tenant":     {Secret: secret, Tenant: "a/b"},
		"no such file":       {KeySet: filepath.Join(t.TempDir(), "none"), Issuer: issuer, Audience: aud},
		"a folder":           {KeySet: t.TempDir(), Issuer: issuer, Audience: aud},
		"plain http":         {KeySet: "http://issuer.example/jwks", Issuer: issuer, Audience: aud},
		"a name of loopback": {KeySet: "http://localhost.issuer.example/jwks", Issuer: issuer, Audience: aud},
		"another scheme":     {KeySet: "ftp://127.0.0.1/jwks", Issuer: issuer, Audience: aud},
		"a user":             {KeySet: "https://ann:word@issuer.example/jwks", Issuer: issuer, Audience: aud},
	} {
		_, err := identity.New(o)
		if skill.CodeOf(err) != skill.InvalidArgument || strings.Contains(err.Error(), "word") || strings.Contains(err.Error(), os.TempDir()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
