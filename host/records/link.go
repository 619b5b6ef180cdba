package records

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Origin is what the first record of a chain names as the hash before it.
var Origin = strings.Repeat("0", 2*sha256.Size)

// domain sets these hashes apart from all others, and this encoding from later ones.
const domain = "openskill audit record 1"

// Link chains r to the record whose hash is prev: it sets Prev, and Hash to the SHA-256,
// in hexadecimal, of domain, tenant, sequence number, kind, execution id, time, body and
// prev. Each text has its length before it, in eight bytes with the highest first, and
// numbers are eight such bytes, so that no two records that differ in a field, or in
// where a field begins, are the same bytes. The time counts in microseconds since 1970,
// since that is what databases keep of it.
func Link(prev string, r *Record) {
	r.Prev = prev
	b := make([]byte, 0, 256+len(r.Body))
	b = text(b, domain)
	b = text(b, r.Tenant)
	b = binary.BigEndian.AppendUint64(b, r.Seq)
	b = text(b, r.Kind)
	b = text(b, r.ExecutionID)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Time.UnixMicro()))
	b = text(b, string(r.Body))
	b = text(b, prev)
	sum := sha256.Sum256(b)
	r.Hash = hex.EncodeToString(sum[:])
}

func text(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}
