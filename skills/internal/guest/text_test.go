package guest

import (
	"bytes"
	"compress/gzip"
	"testing"

	"openskill/internal/musttest"
)

// TestUnpacksNoMoreThanAsked holds Unpack to its bound, in one member and over many.
func TestUnpacksNoMoreThanAsked(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 64 {
		musttest.Get(z.Write(make([]byte, mib)))(t)
	}
	musttest.Do(t, z.Close())
	for members := 1; members <= 3; members += 2 {
		for _, most := range []int{0, 1, 100_000, 64*mib - 1, 64*mib + 5} {
			packed := bytes.Repeat(bomb.Bytes(), members)
			got, err := Unpack(packed, most)
			if want := min(most+1, members*64*mib); err != nil || len(got) != want {
				t.Errorf("%d members, at most %d: %d bytes, %v; want %d", members, most, len(got), err, want)
			}
		}
	}
}
