package records

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
)

// pageBytes is about how much of a chain is in memory when it is read.
const pageBytes = 4 << 20

// Records reads the chain of a tenant from a sequence number on, a page at a time.
func Records(ctx context.Context, s Store, tenant string, from uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		limit := 100 // until it is known how large records are
		for {
			page, err := s.Records(ctx, tenant, from, limit)
			if err != nil {
				yield(nil, err)
				return
			}
			size := 0
			for i := range page {
				size += len(page[i].Body) + 300
				if !yield(&page[i], nil) {
					return
				}
			}
			if len(page) < limit || page[len(page)-1].Seq < from {
				return
			}
			from = page[len(page)-1].Seq + 1
			limit = min(max(pageBytes*len(page)/size, 4), 4000)
		}
	}
}

// WriteHeads writes heads as lines of JSON, to be kept elsewhere: who changes the whole
// database cannot change them.
func WriteHeads(w io.Writer, heads []Head) error {
	enc := json.NewEncoder(w)
	for _, h := range heads {
		if err := enc.Encode(h); err != nil {
			return err
		}
	}
	return nil
}

// ReadHeads reads what WriteHeads wrote, from one or several times.
func ReadHeads(r io.Reader) ([]Head, error) {
	var heads []Head
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		var h Head
		if err := dec.Decode(&h); err != nil || h.Tenant == "" || h.Last > 0 && len(h.LastHash) != len(Origin) {
			return nil, fmt.Errorf("line %d is not a head of a chain", n)
		}
		heads = append(heads, h)
	}
	return heads, lines.Err()
}
