package extism

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	asm "openskill/wasm/wasmtest"
)

// numbering answers each request with how many there were.
type numbering struct{ asked atomic.Int32 }

func (n *numbering) For(*skill.Call) skill.Fetch {
	return func(context.Context, []byte) []byte {
		return fmt.Appendf(nil, `{"status": 200, "url": "", "headers": {}, "error": null}`+"\nno. %4d", n.asked.Add(1))
	}
}

// draws is a plug-in that answers with a request's response and with eight random bytes.
func draws() []byte {
	b := asm.New()
	alloc, store, load, set := b.ImportPlugin("alloc"), b.ImportPlugin("store_u64"), b.ImportPlugin("load_u64"), b.ImportPlugin("output_set")
	ask, random := b.ImportPlugin("http_request"), b.Import("random_get")
	b.Memory(1)
	put := func(at int64, value asm.Code) asm.Code {
		return asm.Get(0) + asm.I64(at) + asm.Add64 + value + asm.Call(store)
	}
	request := `{"url": "http://a.example"}     `
	body := asm.I64(32) + asm.Call(alloc) + asm.Set(0)
	for i := 0; i < len(request); i += 8 {
		v := int64(0)
		for j := range 8 {
			v |= int64(request[i+j]) << (8 * j)
		}
		body += put(int64(i), asm.I64(v))
	}
	body += asm.Get(0) + asm.I64(0) + asm.Call(ask) + asm.Set(1) +
		asm.I64(16) + asm.Call(alloc) + asm.Set(0) +
		put(0, asm.Get(1)+asm.Call(load)) +
		asm.I32(64) + asm.I32(8) + asm.Call(random) + asm.Drop +
		put(8, asm.I32(64)+asm.Load64) +
		asm.Get(0) + asm.I64(16) + asm.Call(set)
	two := locals[0]
	two.Count = 2
	b.Export("invoke", b.Func(nil, nil, append(locals[:0:0], two), body))
	return b.Bytes()
}

// A plug-in that draws chance and answers from the network does again what it did.
func TestReplay(t *testing.T) {
	t.Parallel()
	net := &numbering{}
	r := New(engine(t), &Options{Outgoing: net})
	t.Cleanup(func() { r.Close() })
	call := pluginOf(t, draws(), "m.wasm")
	call.Record = 1 << 20
	run := func(c skill.Call) *skill.Reply {
		t.Helper()
		reply, err := runnertest.Do(t.Context(), r, &c)
		if err != nil || reply.Code != "" || reply.ExitCode != 0 || len(reply.Stdout) != 16 {
			t.Fatalf("%+v, %v", reply, err)
		}
		return reply
	}
	then, other := run(*call), run(*call)
	if string(then.Stdout) == string(other.Stdout) || !strings.HasPrefix(string(then.Stdout), "no. ") || then.Recording == nil || then.Recording.Draws == nil {
		t.Fatalf("%q and %q, %+v", then.Stdout, other.Stdout, then.Recording)
	}
	asked := net.asked.Load()
	again := *call
	again.Replay = then.Recording.Draws
	if now := run(again); now.Differs != "" || string(now.Stdout) != string(then.Stdout) || now.Usage.Fuel != then.Usage.Fuel {
		t.Errorf("%q: %q, then %q", now.Differs, now.Stdout, then.Stdout)
	}
	if net.asked.Load() != asked {
		t.Error("a replay asks the network")
	}
}
