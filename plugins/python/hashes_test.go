package python

import (
	"testing"

	"openskill/plugins/runnertest"
)

// TestKeysOfPasswords: hashlib.pbkdf2_hmac gives the keys of RFC 6070 and RFC 7914, and for
// the rest what CPython with OpenSSL gives, in scripts and in skills.
func TestKeysOfPasswords(t *testing.T) {
	oneGuest(t)
	const text = `
import hashlib, inspect
def said(call):
    try: return call().hex()
    except Exception as error: return type(error).__name__ + ": " + str(error).removeprefix("memoryview: ")
print("RFC 6070")
for p, s, c, n in ((b"password", b"salt", 1, 20), (b"password", b"salt", 2, 20), (b"password", b"salt", 4096, 20), (b"passwordPASSWORDpassword", b"saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, 25), (b"pass\0word", b"sa\0lt", 4096, 16)):
    print(hashlib.pbkdf2_hmac("sha1", p, s, c, n).hex())
print("RFC 7914")
print(hashlib.pbkdf2_hmac("sha256", b"passwd", b"salt", 1, 64).hex())
print(hashlib.pbkdf2_hmac("sha256", b"Password", b"NaCl", 5000, 64).hex())
print("more")
print(hashlib.pbkdf2_hmac("sha512", bytearray(b"p" * 200), memoryview(b""), iterations=3, dklen=None).hex()[:32], "pbkdf2_hmac" in hashlib.__all__)
print(hashlib.pbkdf2_hmac(hash_name="sha3_256", password=b"", salt=b"s", iterations=1).hex()[:32])
for args in (("sha256", "p", b"s", 1), ("sha256", b"p", b"s", 0), ("sha256", b"p", b"s", 1, 0), (b"sha256", b"p", b"s", 1)):
    print(said(lambda: hashlib.pbkdf2_hmac(*args)))
print(said(lambda: hashlib.pbkdf2_hmac("shake_128", b"p", b"s", 1))[:10])
`
	const want = `RFC 6070
0c60c80f961f0e71f3a9b524af6012062fe037a6
ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957
4b007901b765489abead49d926f721d065a429c1
3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038
56fa6aa75548099dcc37d7f03425e0c3
RFC 7914
55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783
363554eb3e18133b30d6b01a40b9eb7695535f3484f34981dc9b51f7ef4f65f5ce4e634f5323d1cbc17e79f0662155d3435274381358b331f4de2d81399e24e0
more
e7fb107d962cf438a900bfe87dee33ad True
35dd5406c6b6359cd5bf56413f788370
TypeError: a bytes-like object is required, not 'str'
ValueError: iteration value must be greater than 0.
ValueError: key length must be greater than 0.
TypeError: pbkdf2_hmac() argument 'hash_name' must be str, not bytes
ValueError
`
	runners(t, []string{"slim", "python-3.12"}, func(t *testing.T, r *Runner) {
		for _, program := range []bool{true, false} {
			c := script(t, text)
			c.Script = program
			reply, err := runnertest.Do(t.Context(), r, c)
			if err != nil || string(reply.Stdout) != want {
				t.Errorf("%v\n%s\n%s", err, reply.Stdout, reply.Stderr)
			}
		}
	})
}
