package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"strings"
	"testing"
)

// FuzzKeySet: whatever a key set says, what is read of it are a few public keys, each
// with the algorithm of its kind.
func FuzzKeySet(f *testing.F) {
	for _, s := range []string{
		`{"keys":[]}`, `{"keys":[{"kty":"oct","k":"AA"}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`,
		`{"keys":[{"kty":"EC","crv":"P-256","use":"sig","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`,
		`{"keys":[{"kty":"RSA","e":"AQAB","alg":"RS256","n":"` + strings.Repeat("_", 342) + `"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := parseKeySet(b)
		if (err == nil) != (len(keys) > 0) || len(keys) > mostSetKeys {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		seen := map[string]bool{}
		for _, k := range keys {
			if seen[k.kid] && k.kid != "" || len(k.kid) > longestKeyID {
				t.Fatalf("kid %q", k.kid)
			}
			seen[k.kid] = true
			want := ""
			switch p := k.key.(type) {
			case *rsa.PublicKey:
				want = algRS256
				if bits := p.N.BitLen(); bits < leastRSA || bits > mostRSA || p.E < 3 {
					t.Fatalf("an RSA key of %d bits", bits)
				}
			case *ecdsa.PublicKey:
				want = algES256
			case ed25519.PublicKey:
				want = algEdDSA
			}
			if k.alg != want || want == "" {
				t.Fatalf("%T for %s", k.key, k.alg)
			}
		}
	})
}
