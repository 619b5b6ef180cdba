package records_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
)

// The hash of one record, as it has to be for ever: chains outlive releases.
func TestLinkIsFixed(t *testing.T) {
	r := records.Record{
		Tenant: "acme", Seq: 7, Kind: records.KindStarted, ExecutionID: "0198c2f0-0000-7000-8000-000000000001",
		Time: time.Date(2026, 11, 22, 10, 30, 0, 123456789, time.UTC), Body: []byte(`{"skill":"echo"}`),
	}
	records.Link(records.Origin, &r)
	if r.Prev != strings.Repeat("0", 64) {
		t.Errorf("the first record names %q before it", r.Prev)
	}
	const want = "435ed4b02f3fb7f516e4d20edd46c518ba687d42a01b5f513ef65ea379795f11"
	if r.Hash != want {
		t.Errorf("the hash is %s, want %s", r.Hash, want)
	}
	// What a database keeps of the time is enough, in whatever zone it is read.
	r.Time = r.Time.Truncate(time.Microsecond).In(time.FixedZone("", 3600))
	if records.Link(records.Origin, &r); r.Hash != want {
		t.Errorf("the hash of the same record, as read from a database, is %s", r.Hash)
	}
}

// Records that differ in one field, or in where a field begins, differ in their hash.
func TestLinkTellsRecordsApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	// Few letters, and those that an encoding might use between fields: the same text is
	// met again and again, cut at other places.
	word := func(n int) string {
		b := make([]byte, rng.IntN(n))
		for i := range b {
			b[i] = "a0\x00,\"\x08"[rng.IntN(6)]
		}
		return string(b)
	}
	seen := map[string]string{}
	for range 200_000 {
		r := records.Record{
			Tenant: word(4), Seq: uint64(rng.IntN(3)), Kind: word(3), ExecutionID: word(4),
			Time: time.UnixMicro(int64(rng.IntN(3)) - 1), Body: []byte(word(4)),
		}
		prev := word(3)
		key := fmt.Sprintf("%q %d %q %q %d %q %q", r.Tenant, r.Seq, r.Kind, r.ExecutionID, r.Time.UnixMicro(), r.Body, prev)
		records.Link(prev, &r)
		if other, ok := seen[r.Hash]; ok && other != key {
			t.Fatalf("one hash for two records:\n%s\n%s", other, key)
		}
		seen[r.Hash] = key
	}
	if len(seen) < 100_000 {
		t.Errorf("only %d different records were tried", len(seen))
	}
}

// Text moves from one field into its neighbour: nothing is lost and nothing is gained,
// and yet it is another record.
func TestLinkKeepsFieldsApart(t *testing.T) {
	const all = "tenantkindexecutionbodyprev"
	seen := map[string][4]int{}
	for a := 0; a <= len(all); a += 2 {
		for b := a; b <= len(all); b += 2 {
			for c := b; c <= len(all); c += 2 {
				for d := c; d <= len(all); d += 2 {
					r := records.Record{Tenant: all[:a], Kind: all[a:b], ExecutionID: all[b:c], Body: []byte(all[c:d]), Time: time.UnixMicro(1)}
					records.Link(all[d:], &r)
					cut := [4]int{a, b, c, d}
					if other, ok := seen[r.Hash]; ok {
						t.Fatalf("cut at %v and at %v it has one hash", cut, other)
					}
					seen[r.Hash] = cut
				}
			}
		}
	}
}
