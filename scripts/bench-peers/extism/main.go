// Command extism is a peer of `openskill bench --peers`: it runs scripts in fresh
// instances of CPython by the Go SDK of Extism. scripts/bench-peers/peer.py says
// what it reads and writes.
//
//	extism MODULE LIBRARY SCRIPTS CACHE
package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
)

type peer struct {
	plugin  *extism.CompiledPlugin
	library *zip.ReadCloser
	scripts string
}

func open(ctx context.Context, module, library, scripts, cache string) (*peer, error) {
	c, err := wazero.NewCompilationCacheWithDir(cache)
	if err != nil {
		return nil, err
	}
	z, err := zip.OpenReader(library)
	if err != nil {
		return nil, err
	}
	none := extism.NewHostFunctionWithStack("call", func(_ context.Context, _ *extism.CurrentPlugin, stack []uint64) {
		stack[0] = api.EncodeI32(-1)
	}, []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32})
	none.SetNamespace("host")
	p, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmFile{Path: module, Name: "main"}}}, extism.PluginConfig{
		EnableWasi: true,
		RuntimeConfig: wazero.NewRuntimeConfig().WithCompilationCache(c).
			WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst),
	}, []extism.HostFunction{none})
	if err != nil {
		return nil, err
	}
	return &peer{plugin: p, library: z, scripts: scripts}, nil
}

// start is a whole call, of an instance of its own.
func (p *peer) start(ctx context.Context, script string, stdin io.Reader, stdout io.Writer) error {
	var problem bytes.Buffer
	files := wazero.NewFSConfig().WithFSMount(p.library, "/usr/local/lib/python315.zip").WithReadOnlyDirMount(p.scripts, "/scripts")
	cfg := wazero.NewModuleConfig().WithArgs("/usr/local/bin/python.wasm", "-B", "-s", "-X", "utf8", "/scripts/"+script).
		WithEnv("PYTHONTZPATH", "").WithFSConfig(files).WithStdin(stdin).WithStdout(stdout).WithStderr(&problem).
		WithSysWalltime().WithSysNanotime()
	in, err := p.plugin.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: cfg})
	if err != nil {
		return err
	}
	defer in.CloseWithContext(ctx)
	exit, _, err := in.CallWithContext(ctx, "run", nil)
	if e := (*sys.ExitError)(nil); err != nil && (!errors.As(err, &e) || e.ExitCode() != 0) || exit != 0 {
		return fmt.Errorf("exit code %d, %w: %.300s", exit, err, problem.Bytes())
	}
	return nil
}

type silent struct{ asked chan struct{} }

// Read never comes back.
func (s *silent) Read([]byte) (int, error) {
	close(s.asked)
	select {}
}

func (p *peer) do(ctx context.Context, line []byte) (map[string]any, error) {
	var q struct {
		Do, Script, Stdin string
		N                 int
	}
	if err := json.Unmarshal(line, &q); err != nil {
		return nil, err
	}
	switch q.Do {
	case "call":
		var out bytes.Buffer
		began := time.Now()
		err := p.start(ctx, q.Script, bytes.NewReader([]byte(q.Stdin)), &out)
		return map[string]any{"stdout": out.String(), "ns": time.Since(began).Nanoseconds()}, err
	case "hold":
		for range q.N {
			asked, ended := make(chan struct{}), make(chan error, 1)
			go func() { ended <- p.start(ctx, q.Script, &silent{asked}, io.Discard) }()
			select {
			case <-asked:
			case err := <-ended:
				return nil, fmt.Errorf("ended without input: %w", err)
			}
		}
		return map[string]any{}, nil
	case "serve":
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		go http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var out bytes.Buffer
			if err := p.start(r.Context(), q.Script, r.Body, &out); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprintf(w, `{"success":true,"data":%s}`, bytes.TrimSpace(out.Bytes()))
		}))
		return map[string]any{"addr": ln.Addr().String()}, nil
	}
	return nil, fmt.Errorf("what is %q?", q.Do)
}

func main() {
	ctx := context.Background()
	var p *peer
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var answer map[string]any
		var err error
		if p == nil {
			p, err = open(ctx, os.Args[1], os.Args[2], os.Args[3], os.Args[4])
		}
		if err == nil {
			answer, err = p.do(ctx, lines.Bytes())
		}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		b, _ := json.Marshal(answer)
		os.Stdout.Write(append(b, '\n'))
	}
}
