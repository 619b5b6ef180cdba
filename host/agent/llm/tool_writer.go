package llm

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/maypok86/otter/v2"

	"openskill/sdk/skill"
)

// mostToolsKept is how many bytes of tools are kept.
const mostToolsKept = 16 << 20

// toolWriter writes tools in one vendor's words, and keeps them: to say a schema in them costs
// more than all else in a request, and the same tools go along with every one. It is safe for concurrent use.
type toolWriter struct {
	form  func([]skill.Tool) any
	known *otter.Cache[[sha256.Size]byte, json.RawMessage]
}

// newToolWriter takes one of the functions of package tools.
func newToolWriter(form func([]skill.Tool) any) (*toolWriter, error) {
	known, err := otter.New(&otter.Options[[sha256.Size]byte, json.RawMessage]{
		MaximumWeight: mostToolsKept,
		Weigher: func(_ [sha256.Size]byte, tool json.RawMessage) uint32 {
			return uint32(len(tool)) + 128
		},
	})
	if err != nil {
		return nil, fmt.Errorf("newToolWriter: %w", err)
	}
	return &toolWriter{form, known}, nil
}

// write gives each tool as JSON, in order. One that the vendor would refuse is left out.
func (t *toolWriter) write(list []skill.Tool) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for i := range list {
		key := keyOf(&list[i])
		raw, ok := t.known.GetIfPresent(key)
		if !ok {
			b, err := json.Marshal(t.form(list[i : i+1]))
			if err != nil {
				return nil, fmt.Errorf("llm.write: %w", err)
			}
			var one []json.RawMessage
			if err := json.Unmarshal(b, &one); err != nil {
				return nil, fmt.Errorf("llm.write: %w", err)
			}
			if len(one) > 0 {
				raw = one[0]
			}
			t.known.Set(key, raw)
		}
		if raw != nil {
			out = append(out, raw)
		}
	}
	return out, nil
}

// keyOf is what a tool's form depends on.
func keyOf(t *skill.Tool) (key [sha256.Size]byte) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %d %s%s%s", len(t.Name), len(t.Description), t.Name, t.Description, t.InputSchema)
	h.Sum(key[:0])
	return key
}
