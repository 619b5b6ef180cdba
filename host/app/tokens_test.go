package app

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// providerToken is a file of testdata/tokens: an access token in the shape of an identity
// provider's, the settings that read it, and whom it means.
type providerToken struct {
	Settings  map[string]string
	JWK       map[string]any   // members that the provider's key has beside those of RSA
	OtherKeys []map[string]any `json:"other_keys"` // of the same key set
	Header    map[string]any
	Claims    map[string]any // without times
	Principal struct {
		ID, Name, Tenant string
		Scopes           []string
	}
}

// sign makes the token, and sets what the host verifies it with.
func (p *providerToken) sign(t *testing.T) (token string, flags map[string]string) {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	part := func(v any) string {
		b := musttest.Get(json.Marshal(v))(t)
		return encode(b)
	}
	now := time.Now().Unix()
	p.Claims["iat"], p.Claims["exp"] = now, now+300
	text := part(p.Header) + "." + part(p.Claims)
	flags = maps.Clone(p.Settings)
	flags["auth"] = "required"
	sum := sha256.Sum256([]byte(text))
	if p.JWK == nil {
		mac := hmac.New(sha256.New, []byte(jwtSecret))
		mac.Write([]byte(text))
		return text + "." + encode(mac.Sum(nil)), flags
	}
	key := musttest.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	p.JWK["kty"], p.JWK["kid"] = "RSA", p.Header["kid"]
	p.JWK["n"], p.JWK["e"] = encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes())
	set := musttest.Get(json.Marshal(map[string]any{"keys": append(p.OtherKeys, p.JWK)}))(t)
	flags["jwt-jwks"] = filepath.Join(t.TempDir(), "jwks.json")
	musttest.Do(t, os.WriteFile(flags["jwt-jwks"], set, 0o600))
	signature := musttest.Get(rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:]))(t)
	return text + "." + encode(signature), flags
}

// TestReadsTokensOfProviders starts a host with the settings of each provider, and calls a
// skill with its token.
func TestReadsTokensOfProviders(t *testing.T) {
	files, err := os.ReadDir("testdata/tokens")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(f.Name(), ".json"), func(t *testing.T) {
			b := musttest.Get(os.ReadFile(filepath.Join("testdata/tokens", f.Name())))(t)
			var p providerToken
			musttest.Do(t, json.Unmarshal(b, &p))
			token, flags := p.sign(t)
			s := settings(t, flags)
			if p.JWK == nil {
				s.JWTSecret = jwtSecret // which has no flag
			}
			addSkills(t, s.SkillsDir, map[string]string{"echo": `{"echoed": "x"}`})
			v := serve(t, s)
			who, err := v.host.authenticate()(t.Context(), identity.Credentials{Authorization: []string{"Bearer " + token}})
			want := skill.Principal{ID: p.Principal.ID, Name: p.Principal.Name, Type: skill.Human, Tenant: p.Principal.Tenant, Scopes: p.Principal.Scopes}
			who.Until = time.Time{}
			if diff := cmp.Diff(want, who); diff != "" || err != nil {
				t.Fatal(err, diff)
			}
			req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, v.url+"/skills/echo:invoke", strings.NewReader(`{"input": {"text": "x"}}`)))(t)
			req.Header.Set("Authorization", "Bearer "+token)
			res, err := http.DefaultClient.Do(req)
			musttest.Do(t, err)
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("the call answers %d", res.StatusCode)
			}
		})
	}
}
