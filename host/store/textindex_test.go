package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/internal/musttest"
)

func everything(int) bool { return true }

var searched = []Document{
	{"csv_tools", "Converts tables between formats.", `{"properties":{"delimiter":{"type":"string"}}}`},
	{"unit-converter", "Convert miles, kilometers and pounds.", "Multiply by the factor."},
	{"log_transform", "Reads log files line by line.", "A table of levels."},
	{"report", "生成销售报告和日志分析。", "报告"},
	{"menu", "Carte du café et crème brûlée.", ""},
}

// TestTextIndex: words match in any form and script, names count more than descriptions, and these more than text.
func TestTextIndex(t *testing.T) {
	x := musttest.Get(NewTextIndex(t.Context(), searched))(t)
	for query, want := range map[string]string{
		"convert":                     "[1 0]", // also Converts and converter
		"converting kilometers":       "[1 0]",
		"LOG":                         "[2]",
		"table":                       "[0 2]", // of a description before that of a text
		"log_transform":               "[2]",
		"delimiter":                   "[0]",
		"日志":                          "[3]",
		"志日":                          "[]",
		"请给我报告":                       "[3]",
		"报":                           "[3]",
		"cafe brulee":                 "[4]",
		"nothing here":                "[]",
		"":                            "[]",
		"  ,;-- ":                     "[]",
		`"`:                           "[]",
		`" OR name:* NEAR(a b) -log`:  "[2]",
		"log AND NOT miles":           "[1 2]",
		"docs MATCH 'x'); DROP TABLE": "[0 2]",
		"log\x00\xff\xfe":             "[2]",
	} {
		got, err := x.Search(t.Context(), query, 10, everything)
		if fmt.Sprint(got) != want || err != nil {
			t.Errorf("%q: %v, %v, want %s", query, got, err, want)
		}
	}
	got := musttest.Get(x.Search(t.Context(), "convert log table", 2, func(i int) bool { return i != 1 }))(t)
	if slices.Sort(got); fmt.Sprint(got) != "[0 2]" {
		t.Errorf("those to keep: %v", got)
	}
	if got := musttest.Get(x.Search(t.Context(), "log", 0, everything))(t); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// TestTextIndexBounds: long queries and documents cost a bounded amount, and a context ends both.
func TestTextIndexBounds(t *testing.T) {
	long := strings.Repeat("word ", maxDocument/5) + "beyond"
	x := musttest.Get(NewTextIndex(t.Context(), []Document{{"a", "first", long}}))(t)
	for query, want := range map[string]int{"word": 1, "beyond": 0, "first": 1} {
		if got := musttest.Get(x.Search(t.Context(), query, 10, everything))(t); len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "w%d ", i)
	}
	if n := strings.Count(matching(many.String()), `"`) / 2; n != maxTerms {
		t.Errorf("a query of %d words", n)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Search(over, "word", 1, everything); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := NewTextIndex(over, searched); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestTextIndexAtOnce: searches at once find the same, and memory that nothing refers to is freed.
func TestTextIndexAtOnce(t *testing.T) {
	x := musttest.Get(NewTextIndex(t.Context(), searched))(t)
	db := x.db
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if got, err := x.Search(context.Background(), "convert", 10, everything); fmt.Sprint(got) != "[1 0]" || err != nil {
					t.Errorf("%v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	if x.Size() < 4096 || x.Size() > 1<<20 {
		t.Errorf("%d bytes", x.Size())
	}
	for end := time.Now().Add(10 * time.Second); db.PingContext(t.Context()) == nil; time.Sleep(10 * time.Millisecond) {
		if x = nil; time.Now().After(end) {
			t.Fatal("the database is still open")
		}
		runtime.GC()
	}
}

// TestTextIndexCancelled: searches that are cut off leave the index whole, and no query is an error.
func TestTextIndexCancelled(t *testing.T) {
	var docs []Document
	for i := range 3000 {
		docs = append(docs, Document{fmt.Sprint("name", i), "common words of a description", "common text"})
	}
	x := musttest.Get(NewTextIndex(t.Context(), docs))(t)
	cut := 0
	for i := range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		if _, err := x.Search(ctx, "common words text", 20, everything); err != nil {
			cut++
		}
		cancel()
		if got, err := x.Search(t.Context(), "name7", 5, everything); err != nil || len(got) != 1 || got[0] != 7 {
			t.Fatalf("after %d cut off: %v, %v", cut, got, err)
		}
	}
	if cut == 0 {
		t.Error("no search was cut off")
	}
	chance := rand.New(rand.NewPCG(1, 2))
	signs := []rune("aé\u0301\u00ad\"'*()^:-+{}日ก\U0001f600\x00\u202e ORNEAT")
	for range 2000 {
		var query strings.Builder
		for range 1 + chance.IntN(20) {
			query.WriteRune(signs[chance.IntN(len(signs))])
		}
		if _, err := x.Search(t.Context(), query.String(), 5, everything); err != nil {
			t.Fatalf("%q: %v", query.String(), err)
		}
	}
}
