package workers

import (
	"math"
	"testing"
)

// TestImagesAreBelievedWithinReason: counters of a worker never go back, and none is larger
// than can be, whatever it says.
func TestImagesAreBelievedWithinReason(t *testing.T) {
	w := &process{memory: 1 << 20}
	for _, c := range []struct{ says, want Images }{
		{Images{Bytes: 5, Made: 3, Dropped: 1, Restored: 9}, Images{Bytes: 5, Made: 3, Dropped: 1, Restored: 9}},
		{Images{Bytes: 4, Made: 2, Dropped: 0, Restored: 8}, Images{Bytes: 4, Made: 3, Dropped: 1, Restored: 9}},
		{Images{Bytes: 4, Made: 3, Dropped: 7, Restored: 9}, Images{Bytes: 4, Made: 3, Dropped: 3, Restored: 9}},
		{
			Images{Bytes: math.MaxUint64, Made: math.MaxUint64, Dropped: math.MaxUint64, Restored: math.MaxUint64},
			Images{Bytes: 1 << 20, Made: mostImages, Dropped: mostImages, Restored: mostImages},
		},
	} {
		if w.imagesAre(c.says); w.images != c.want {
			t.Errorf("after %+v: %+v, want %+v", c.says, w.images, c.want)
		}
	}
	var all Images
	w.images = Images{Bytes: 5, Made: 3, Dropped: 1, Restored: 9}
	all.count(w, false)
	all.count(w, true)
	if want := (Images{Bytes: 5, Made: 6, Dropped: 4, Restored: 18}); all != want {
		t.Errorf("of one at work and one that ended: %+v, want %+v", all, want)
	}
}
