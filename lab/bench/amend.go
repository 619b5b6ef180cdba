package bench

import (
	"context"
	"runtime"

	"openskill/internal/measure"

	"openskill/wasm/amend"
	"openskill/wasm/binary"
)

// Amend are the cases of what it costs to rewrite what wazero compiles wrongly: whole
// programs on wazero as it comes, as they are and amended.
func Amend(ctx context.Context, gs []Guest, cacheDir string) ([]measure.Case, error) {
	cases := make([]measure.Case, 0, len(gs))
	for i := range gs {
		g := &gs[i]
		raw, err := newBare(ctx, g, cacheDir, false)
		if err != nil {
			return nil, err
		}
		m, err := binary.Decode(g.Module, &binary.Limits{Size: 256 << 20, Functions: 1_000_000, Datas: 1_000_000, BodySize: 8 << 20, LocalGroups: 10_000_000, CustomBytes: 128 << 20})
		if err != nil {
			return nil, err
		}
		out, err := amend.Module(m, runtime.GOARCH)
		if err != nil {
			return nil, err
		}
		other := *g
		other.Module = out.Encode()
		amended, err := newBare(ctx, &other, cacheDir, false)
		if err != nil {
			return nil, err
		}
		c := &sameOutput{}
		v := amended.variant("amended", g, c)
		v.Goals = []measure.Goal{measure.MinAtMost(1.03)}
		if g.Name == "cpython" {
			v.Goals = []measure.Goal{measure.MinAtMost(1.01)}
		}
		cases = append(cases, measure.Case{Suite: "amend", Name: g.Name, Variants: []measure.Variant{raw.variant("wazero", g, c), v}})
	}
	return cases, nil
}
