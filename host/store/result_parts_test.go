package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/dispatch/quota"
	"openskill/host/records"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

// While a large result is stored, others write many times: it does not hold the connection
// that writes (F20).
func TestLargeResultsLetOthersWrite(t *testing.T) {
	t.Parallel()
	d := storetest.Open(t, "sqlite:"+t.TempDir()+"/test.db")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wrote atomic.Int64
	ended := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			if err := quota.NewStore(d).Exchange(ctx, []string{fmt.Sprint("beta ", i%10)}, func([]quota.Row) {}); err != nil {
				ended <- err
				return
			}
			wrote.Add(1)
		}
	}()
	for wrote.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	before := wrote.Load()
	k := &records.Kept{Tenant: "acme", ExecutionID: "00000000-0000-7000-8000-000000000001", Items: []records.Item{{Name: "x", Data: make([]byte, 56<<20)}}, At: when, Until: when.Add(time.Hour)}
	musttest.Do(t, records.NewResults(d).Put(t.Context(), k, records.Room{Bytes: 1 << 30, Items: 100}))
	if n := wrote.Load() - before; n < 20 {
		t.Errorf("others wrote %d times while 56 MiB were stored", n)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Parts go with what they are of: when it is replaced, makes room, expires, or was never
// finished, and no others do.
func TestPartsAreRemoved(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, fresh func(t *testing.T) string) {
		url := fresh(t)
		d := storetest.Open(t, url)
		r := rawOf(t, url)
		large := bytes.Repeat([]byte("0123456"), 3<<20/7+1)
		put := func(id int, until time.Time, most int64, data []byte) error {
			return records.NewResults(d).Put(t.Context(), &records.Kept{
				Tenant: "acme", ExecutionID: fmt.Sprintf("00000000-0000-7000-8000-%012d", id), At: when, Until: until, Items: []records.Item{{Name: "x", Data: data}},
			}, records.Room{Bytes: most, Items: 100})
		}
		parts := func(what string, want int) {
			t.Helper()
			if got := len(r.rows(t, "SELECT 1 FROM result_parts")); got != want {
				t.Errorf("%s: %d parts are left, want %d", what, got, want)
			}
		}
		must := func(err error) {
			t.Helper()
			musttest.Do(t, err)
		}
		sweep := func(after time.Duration) {
			t.Helper()
			musttest.Get(records.NewResults(d).Sweep(t.Context(), when.Add(after), 100))(t)
		}
		must(put(1, when.Add(time.Hour), 1<<30, large))
		parts("kept", 4)
		must(put(1, when.Add(time.Hour), 1<<30, []byte("small")))
		parts("replaced", 0)
		must(put(2, when.Add(time.Hour), 1<<30, large))
		must(put(3, when.Add(2*time.Hour), 4<<20, large))
		parts("made room", 4)
		must(put(4, when.Add(3*time.Hour), 1<<30, bytes.Repeat(large, 7)))
		sweep(3 * time.Hour)
		parts("expired", 0)
		must(put(5, when.Add(3*time.Hour), 1<<30, large))
		for part := range 20 { // of a host that was killed
			r.exec(t, "INSERT INTO result_parts (id, part, created_at, body) SELECT 'x', $1, created_at, $2 FROM result_parts WHERE part = 0 AND id <> 'x'", part, []byte("x"))
		}
		sweep(5 * time.Minute)
		parts("perhaps not finished yet", 24)
		sweep(11 * time.Minute)
		parts("never finished", 4)
		if b, err := records.NewResults(d).Get(t.Context(), "acme", "00000000-0000-7000-8000-000000000005", "x", records.WholeResult, when); err != nil || !bytes.Equal(b, large) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	})
}
