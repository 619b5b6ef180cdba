package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/records"
	"openskill/internal/musttest"
)

// Results holds a store of results to its contract. open gives a new, empty one for each
// call; another gives the same one as another process would open it.
func Results(t *testing.T, open func(t *testing.T) (store, another records.Results)) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s, another records.Results){
		"what is kept is read":     resultsRoundTrip,
		"time":                     resultsExpire,
		"tenants":                  resultsTenants,
		"room":                     resultsRoom,
		"room for many at once":    resultsManyAtOnce,
		"empty ones":               resultsEmpty,
		"number":                   resultsNumber,
		"what shall end":           resultsAsked,
		"all or nothing":           resultsContext,
		"hostile names and tenant": resultsHostile,
	} {
		t.Run(name, func(t *testing.T) {
			s, another := open(t)
			test(t, s, another)
		})
	}
}

// runID is the id of the nth execution.
func runID(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012x", n) }

func keepItems(t *testing.T, s records.Results, tenant string, n int, until time.Time, most records.Room, items ...records.Item) {
	t.Helper()
	musttest.Do(t, s.Put(t.Context(), &records.Kept{Tenant: tenant, ExecutionID: runID(n), Items: items, At: day, Until: until}, most))
}

// keptOf lists which of the first n executions have an item x at a time.
func keptOf(t *testing.T, s records.Results, tenant string, n int, now time.Time) (list []int) {
	t.Helper()
	for i := range n {
		switch _, err := s.Get(t.Context(), tenant, runID(i), "x", records.WholeResult, now); {
		case err == nil:
			list = append(list, i)
		case !errors.Is(err, records.ErrNotKept):
			t.Fatal(err)
		}
	}
	return list
}

var plenty = records.Room{Bytes: 1 << 40, Items: 1 << 40}

// roomFor is as many bytes as items with names of one letter take whose data have size bytes
// together.
func roomFor(items, size int64) records.Room {
	return records.Room{Bytes: items*records.Size("x", 0) + size, Items: 1 << 40}
}

func item(name string, size int) records.Item {
	return records.Item{Name: name, Data: bytes.Repeat([]byte{'d'}, size)}
}

func resultsRoundTrip(t *testing.T, s, another records.Results) {
	t.Helper()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	big := bytes.Repeat(all, 16<<10) // 4 MiB
	items := []records.Item{{Data: []byte(`{"success":true}`)}, {Name: "é/ü.csv", Data: all}, {Name: "big", Data: big}, {Name: "empty"}}
	keepItems(t, s, "acme", 1, day.Add(time.Hour), plenty, items...)
	for _, i := range items {
		got, err := another.Get(t.Context(), "acme", runID(1), i.Name, records.WholeResult, day)
		if err != nil || !bytes.Equal(got, i.Data) {
			t.Errorf("%q: %d bytes of %d, %v", i.Name, len(got), len(i.Data), err)
		}
		for _, most := range []int{0, 1, 100, 1 << 20, 1<<20 + 1, 3<<20 - 1, 4 << 20} {
			got, err := another.Get(t.Context(), "acme", runID(1), i.Name, most, day)
			if err != nil || !bytes.Equal(got, i.Data[:min(most, len(i.Data))]) {
				t.Errorf("%q: at most %d bytes: %d, %v", i.Name, most, len(got), err)
			}
		}
	}
	sizes, err := another.Sizes(t.Context(), "acme", runID(1), day)
	if diff := cmp.Diff(map[string]int{"": len(items[0].Data), "big": len(big), "empty": 0, "é/ü.csv": len(all)}, sizes); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	keepItems(t, s, "acme", 1, day.Add(time.Hour), plenty, records.Item{Data: []byte("anew")})
	if got, err := another.Get(t.Context(), "acme", runID(1), "", records.WholeResult, day); err != nil || string(got) != "anew" {
		t.Errorf("%q, %v", got, err)
	}
	if sizes, err := s.Sizes(t.Context(), "acme", runID(2), day); err != nil || len(sizes) > 0 {
		t.Errorf("of another execution: %v, %v", sizes, err)
	}
}

func resultsExpire(t *testing.T, s, _ records.Results) {
	t.Helper()
	for i := range 5 {
		keepItems(t, s, "acme", i, day.Add(time.Duration(i)*time.Hour), plenty, item("x", 10), item("y", 10))
	}
	at := day.Add(2 * time.Hour) // the third one expires in this moment
	if got, want := keptOf(t, s, "acme", 5, at), []int{3, 4}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if sizes, err := s.Sizes(t.Context(), "acme", runID(2), at); err != nil || len(sizes) > 0 {
		t.Errorf("%v, %v", sizes, err)
	}
	for _, want := range []int{4, 2, 0} { // of six items, four at once
		if n, err := s.Sweep(t.Context(), at, 4); err != nil || n != want {
			t.Errorf("swept %d, want %d; %v", n, want, err)
		}
	}
	if got, want := keptOf(t, s, "acme", 5, day.Add(-time.Hour)), []int{3, 4}; !cmp.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	// The room of what was swept is free again, and no more than that.
	keepItems(t, s, "acme", 9, day.Add(9*time.Hour), roomFor(5, 100), item("x", 60))
	if got, want := keptOf(t, s, "acme", 5, day), []int{3, 4}; !cmp.Equal(got, want) {
		t.Errorf("within the bound left are %v, want %v", got, want)
	}
	keepItems(t, s, "acme", 9, day.Add(9*time.Hour), roomFor(5, 100), item("y", 1))
	if got, want := keptOf(t, s, "acme", 5, day), []int{4}; !cmp.Equal(got, want) {
		t.Errorf("beyond it left are %v, want %v", got, want)
	}
}

func resultsTenants(t *testing.T, s, _ records.Results) {
	t.Helper()
	keepItems(t, s, "acme", 1, day.Add(time.Hour), plenty, item("x", 10), item("", 10))
	for _, tenant := range []string{"other", "", "ACME", "acme ", "%"} {
		if b, err := s.Get(t.Context(), tenant, runID(1), "x", records.WholeResult, day); !errors.Is(err, records.ErrNotKept) {
			t.Errorf("%q: %d bytes, %v", tenant, len(b), err)
		}
		if sizes, err := s.Sizes(t.Context(), tenant, runID(1), day); err != nil || len(sizes) > 0 {
			t.Errorf("%q: %v, %v", tenant, sizes, err)
		}
	}
}

func resultsRoom(t *testing.T, s, _ records.Results) {
	t.Helper()
	for i, hours := range []int{3, 1, 2, 4} {
		keepItems(t, s, "acme", i, day.Add(time.Duration(hours)*time.Hour), roomFor(4, 100), item("x", 25))
		keepItems(t, s, "other", 10+i, day.Add(time.Hour), roomFor(4, 100), item("x", 25))
	}
	if got := keptOf(t, s, "acme", 4, day); len(got) != 4 {
		t.Errorf("with room for all: %v", got)
	}
	keepItems(t, s, "acme", 0, day.Add(3*time.Hour), roomFor(4, 100), item("x", 25)) // the same again takes no more
	if got := keptOf(t, s, "acme", 4, day); len(got) != 4 {
		t.Errorf("the same again: %v", got)
	}
	keepItems(t, s, "acme", 5, day.Add(time.Minute), roomFor(4, 100), item("x", 26))
	if got, want := keptOf(t, s, "acme", 6, day), []int{0, 3, 5}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v: what expires first goes, but what was just kept", got, want)
	}
	keepItems(t, s, "acme", 6, day.Add(time.Minute), roomFor(4, 100), item("x", 1000))
	if got, want := keptOf(t, s, "acme", 7, day), []int{6}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v: one that is too large alone", got, want)
	}
	if got := keptOf(t, s, "other", 14, day); len(got) != 4 {
		t.Errorf("another tenant has %v", got)
	}
	keepItems(t, s, "acme", 7, day.Add(time.Hour), roomFor(4, 100), item("x", 30))
	if got, want := keptOf(t, s, "acme", 8, day), []int{7}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Items without data take room too: their names and rows do.
func resultsEmpty(t *testing.T, s, another records.Results) {
	t.Helper()
	name := strings.Repeat("n", 200)
	most := records.Room{Bytes: 20 * records.Size("n000"+name, 0), Items: 1 << 40}
	if most.Bytes < 20*400 {
		t.Fatalf("twenty of them count %d bytes", most.Bytes)
	}
	for i := range 5 {
		var all []records.Item
		for n := range 300 { // more than one statement inserts
			all = append(all, records.Item{Name: fmt.Sprintf("n%03d%s", n, name)})
		}
		keepItems(t, s, "acme", i, day.Add(time.Duration(1+i)*time.Hour), most, all[:15+i]...)
		if i == 4 {
			keepItems(t, another, "acme", i, day.Add(time.Duration(1+i)*time.Hour), most, all...)
		}
		total := 0
		for n := range 5 {
			sizes := musttest.Get(s.Sizes(t.Context(), "acme", runID(n), day))(t)
			total += len(sizes)
		}
		if want := []int{15, 20, 20, 20, 300}[i]; total != want {
			t.Errorf("%d are kept after %d executions, want %d", total, i+1, want)
		}
	}
	if n, err := s.Sweep(t.Context(), day.Add(5*time.Hour), 1000); err != nil || n != 300 {
		t.Errorf("swept %d, %v", n, err)
	}
	keepItems(t, s, "acme", 9, day.Add(9*time.Hour), most, item("x", int(most.Bytes-records.Size("x", 0))))
	if got, want := keptOf(t, s, "acme", 10, day), []int{9}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v: the room of what was swept is free", got, want)
	}
}

// However small they are, there are only so many of a tenant.
func resultsNumber(t *testing.T, s, _ records.Results) {
	t.Helper()
	most := records.Room{Bytes: 1 << 40, Items: 3}
	for i := range 6 {
		keepItems(t, s, "acme", i, day.Add(time.Duration(9-i)*time.Hour), most, item("x", 1))
		keepItems(t, s, "acme", i, day.Add(time.Duration(9-i)*time.Hour), most, item("x", 1)) // twice is one
		keepItems(t, s, "other", 10+i, day.Add(time.Hour), plenty, item("x", 1))
	}
	if got, want := keptOf(t, s, "acme", 6, day), []int{0, 1, 5}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := keptOf(t, s, "other", 16, day); len(got) != 6 {
		t.Errorf("another tenant has %v", got)
	}
}

// Two processes that keep at once stay within the bound together.
func resultsManyAtOnce(t *testing.T, s, another records.Results) {
	t.Helper()
	var wg sync.WaitGroup
	for w := range 4 {
		store := s
		if w%2 == 1 {
			store = another
		}
		wg.Go(func() {
			for i := range 10 {
				n := w*10 + i
				k := &records.Kept{Tenant: "acme", ExecutionID: runID(n), Items: []records.Item{item("x", 10)}, At: day, Until: day.Add(time.Duration(1+n) * time.Hour)}
				if err := store.Put(context.Background(), k, roomFor(10, 100)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := keptOf(t, s, "acme", 40, day); len(got) != 10 {
		t.Errorf("%d are kept, and there is room for 10: %v", len(got), got)
	}
}

func resultsAsked(t *testing.T, s, another records.Results) {
	t.Helper()
	for _, n := range []int{1, 3, 3, 200} {
		musttest.Do(t, s.Ask(t.Context(), runID(n), day))
	}
	musttest.Do(t, s.Ask(t.Context(), runID(5), day.Add(time.Hour)))
	ask := func(want string, ids ...int) {
		t.Helper()
		var list []string
		for _, n := range ids {
			list = append(list, runID(n))
		}
		asked := musttest.Get(another.Asked(t.Context(), list))(t)
		var got []string
		for _, n := range ids {
			for _, id := range asked {
				if id == runID(n) {
					got = append(got, fmt.Sprint(n))
				}
			}
		}
		if strings.Join(got, " ") != want || len(asked) != len(got) {
			t.Errorf("%q, want %s", asked, want)
		}
	}
	ask("")
	ask("", 2, 4)
	ask("1 3 5", 1, 2, 3, 4, 5)
	many := make([]int, 4096)
	for i := range many {
		many[i] = i
	}
	ask("1 3 5 200", many...)
	musttest.Get(s.Sweep(t.Context(), day.Add(24*time.Hour), 100))(t)
	ask("5", 1, 2, 3, 4, 5)
}

func resultsContext(t *testing.T, s, _ records.Results) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ctx, &records.Kept{Tenant: "acme", ExecutionID: runID(0), Items: []records.Item{item("x", 10)}, At: day, Until: day.Add(time.Hour)}, plenty); err == nil {
		t.Error("kept after the end of its context")
	}
	if got := keptOf(t, s, "acme", 1, day); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

func resultsHostile(t *testing.T, s, _ records.Results) {
	t.Helper()
	for i, text := range []string{"a'; DROP TABLE results; --", `a"b\c`, "?", "$1", "%s", "a?0b", strings.Repeat("n", 1000), "☃\u202e"} {
		keepItems(t, s, text, i, day.Add(time.Hour), plenty, item(text, 3))
		if b, err := s.Get(t.Context(), text, runID(i), text, records.WholeResult, day); err != nil || len(b) != 3 {
			t.Errorf("%q: %d bytes, %v", text, len(b), err)
		}
	}
	for _, text := range []string{"a\x00b", "a\xffb"} {
		keepItems(t, s, text, 50, day.Add(time.Hour), plenty, item(text, 3))
		if b, err := s.Get(t.Context(), text, runID(50), text, records.WholeResult, day); err != nil || len(b) != 3 {
			t.Errorf("%q: %d bytes, %v", text, len(b), err)
		}
	}
}
