package workers

import (
	"math"
	"testing"
	"time"

	"openskill/sdk/skill"
)

// TestClamp: whatever a worker says of times, its guest's are within those of the call.
func TestClamp(t *testing.T) {
	handed := time.Unix(1000, 0)
	back := handed.Add(time.Second)
	for _, u := range []skill.Usage{
		{},
		{Began: math.MinInt64, Took: math.MaxInt64},
		{Began: math.MaxInt64, Took: math.MinInt64},
		{Began: handed.UnixNano() + 5, Took: math.MaxInt64},
		{Began: back.UnixNano(), Took: 1},
		{Began: handed.UnixNano() - 1, Took: -1},
	} {
		clamp(&u, handed, back)
		began := time.Unix(0, u.Began)
		if began.Before(handed) || u.Took < 0 || began.Add(u.Took).After(back) {
			t.Errorf("%s for %s", began, u.Took)
		}
	}
}
