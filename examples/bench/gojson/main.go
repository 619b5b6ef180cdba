// Command gojson encodes and decodes JSON, hashes and sorts: what Go skills do.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
)

type record struct {
	ID    int               `json:"id"`
	Name  string            `json:"name"`
	Score float64           `json:"score"`
	Tags  []string          `json:"tags"`
	Attrs map[string]string `json:"attrs"`
}

func main() {
	rounds := 30
	if len(os.Args) > 1 {
		if n, err := strconv.Atoi(os.Args[1]); err == nil {
			rounds = n
		}
	}
	sum := sha256.New()
	seed := uint32(1)
	next := func() uint32 {
		seed = seed*1664525 + 1013904223
		return seed >> 8
	}
	for range rounds {
		rs := make([]record, 500)
		for i := range rs {
			rs[i] = record{
				ID: int(next()), Name: fmt.Sprintf("name-%d", next()), Score: float64(next()) / 7,
				Tags: []string{"a", "b", strconv.Itoa(i)}, Attrs: map[string]string{"k": strconv.Itoa(int(next()))},
			}
		}
		sort.Slice(rs, func(i, j int) bool { return rs[i].ID < rs[j].ID })
		b, err := json.Marshal(rs)
		if err != nil {
			panic(err)
		}
		var back []record
		if err := json.Unmarshal(b, &back); err != nil {
			panic(err)
		}
		sum.Write(b)
	}
	fmt.Printf("%x\n", sum.Sum(nil))
}
