package storetest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"openskill/host/dispatch/quota"
	"openskill/internal/musttest"
)

// Quotas holds a store of quotas to its contract. open gives a new, empty one for each
// call; another gives the same one as another process would open it.
func Quotas(t *testing.T, open func(t *testing.T) (store, another quota.Store)) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s, another quota.Store){
		"what is written is read":   quotasRoundTrip,
		"nothing is counted twice":  quotasExclude,
		"many rows":                 quotasMany,
		"sweep":                     quotasSweep,
		"context":                   quotasContext,
		"keys of rows are any text": quotasKeys,
	} {
		t.Run(name, func(t *testing.T) {
			s, another := open(t)
			test(t, s, another)
		})
	}
}

// rows reads rows without changing them.
func rows(t *testing.T, s quota.Store, keys ...string) (got []quota.Row) {
	t.Helper()
	read := musttest.Get(s.Read(t.Context(), keys))(t)
	musttest.Do(t, s.Exchange(t.Context(), keys, func(r []quota.Row) { got = slices.Clone(r) }))
	if diff := gocmp.Diff(got, read); diff != "" {
		t.Errorf("Read: %s", diff)
	}
	return got
}

func quotasRoundTrip(t *testing.T, s, another quota.Store) {
	t.Helper()
	if diff := gocmp.Diff([]quota.Row{{Key: "a"}, {Key: "b"}}, rows(t, s, "a", "b")); diff != "" {
		t.Error(diff)
	}
	want := []quota.Row{
		{Key: "a", Until: math.MaxInt64, Calls: math.MaxInt64, Fuel: math.MaxInt64, Ends: day},
		{Key: "b", Until: -1, Calls: 1, Fuel: 2, Ends: day.Add(time.Hour)},
	}
	musttest.Do(t, s.Exchange(t.Context(), []string{"a", "b"}, func(r []quota.Row) { copy(r, want) }))
	if diff := gocmp.Diff(want, rows(t, another, "a", "b")); diff != "" {
		t.Error(diff)
	}
	if diff := gocmp.Diff([]quota.Row{want[1], {Key: "c"}}, rows(t, s, "b", "c")); diff != "" {
		t.Error(diff)
	}
	if err := s.Exchange(t.Context(), nil, func(r []quota.Row) {
		if len(r) != 0 {
			t.Errorf("%v of no keys", r)
		}
	}); err != nil {
		t.Error(err)
	}
}

// quotasExclude: several hosts count in the same rows, some of them new, in sets that
// overlap.
func quotasExclude(t *testing.T, s, another quota.Store) {
	t.Helper()
	const workers, each = 6, 20
	all := []string{"a", "b", "c", "d", "e"}
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			to := s
			if w%2 == 1 {
				to = another
			}
			for i := range each {
				keys := []string{all[(w+i)%5], all[(w+2*i+1)%5]}
				slices.Sort(keys)
				keys = slices.Compact(keys)
				for len(keys) > 0 { // those that another one has meanwhile are asked for again
					var got []string
					if err := to.Exchange(t.Context(), keys, func(r []quota.Row) {
						got = nil
						for i := range r {
							r[i].Calls++
							got = append(got, r[i].Key)
						}
					}); err != nil {
						t.Error(err)
						return
					}
					keys = slices.DeleteFunc(keys, func(k string) bool { return slices.Contains(got, k) })
				}
			}
		})
	}
	working.Wait()
	want := map[string]int64{}
	for w := range workers {
		for i := range each {
			want[all[(w+i)%5]]++
			if a, b := all[(w+i)%5], all[(w+2*i+1)%5]; a != b {
				want[b]++
			}
		}
	}
	for _, r := range rows(t, s, all...) {
		if r.Calls != want[r.Key] {
			t.Errorf("%s: %d were counted, want %d", r.Key, r.Calls, want[r.Key])
		}
	}
}

func quotasMany(t *testing.T, s, another quota.Store) {
	t.Helper()
	var keys []string
	for i := range 1280 {
		keys = append(keys, fmt.Sprintf("key %04d", i))
	}
	for n := range 2 {
		if err := s.Exchange(t.Context(), keys, func(r []quota.Row) {
			for i := range r {
				r[i].Fuel += int64(i)
			}
		}); err != nil {
			t.Fatal(err)
		}
		for i, r := range rows(t, another, keys...) {
			if r.Key != keys[i] || r.Fuel != int64(i*(n+1)) {
				t.Fatalf("%d: %+v", i, r)
			}
		}
	}
}

func quotasSweep(t *testing.T, s, _ quota.Store) {
	t.Helper()
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprint(i))
	}
	if err := s.Exchange(t.Context(), keys, func(r []quota.Row) {
		for i := range r {
			r[i].Calls, r[i].Ends = 1, day.Add(time.Duration(i)*time.Hour)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ most, want int }{{4, 4}, {4, 1}, {4, 0}} {
		n, err := s.Sweep(t.Context(), day.Add(5*time.Hour), step.most)
		if err != nil || n != step.want {
			t.Errorf("%d, %v, want %d", n, err, step.want)
		}
	}
	for i, r := range rows(t, s, keys...) {
		if left := r.Calls == 1; left != (i >= 5) {
			t.Errorf("%d: %+v", i, r)
		}
	}
}

func quotasContext(t *testing.T, s, _ quota.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Exchange(ctx, []string{"a"}, func(r []quota.Row) { r[0].Calls = 7 }); err == nil {
		t.Error("counted after the end")
	}
	if r := rows(t, s, "a"); r[0].Calls != 0 {
		t.Errorf("%+v", r)
	}
}

func quotasKeys(t *testing.T, s, _ quota.Store) {
	t.Helper()
	keys := []string{"", " ", "%", "'; DROP TABLE quota_counters; --", "?", "?0", "\\", "\"", "\n", "ä😀", strings.Repeat("k", 400)}
	slices.SortFunc(keys, cmp.Compare[string])
	if err := s.Exchange(t.Context(), keys, func(r []quota.Row) {
		for i := range r {
			r[i].Calls = int64(i + 1)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for i, r := range rows(t, s, keys...) {
		if r.Key != keys[i] || r.Calls != int64(i+1) {
			t.Errorf("%q: %+v", keys[i], r)
		}
	}
}
