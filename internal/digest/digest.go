// Package digest computes the digests of modules and of files of skills, and counts what it
// reads for them: a test holds how often an upload is hashed on its way to its first call.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"sync/atomic"
)

// Prefix begins the text of a digest; 64 hexadecimal digits follow.
const Prefix = "sha256:"

var hashed atomic.Int64

// Hashed is how many bytes this process has hashed here.
func Hashed() int64 { return hashed.Load() }

// Of is the digest of b.
func Of(b []byte) string {
	hashed.Add(int64(len(b)))
	return Text(sha256.Sum256(b))
}

// Text is the digest of a sum.
func Text(sum [sha256.Size]byte) string { return Prefix + hex.EncodeToString(sum[:]) }

// Read is the sum of what is left of r, and how many bytes that are.
func Read(r io.Reader) (sum [sha256.Size]byte, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(h, r)
	hashed.Add(n)
	h.Sum(sum[:0])
	return sum, n, err
}
