package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"openskill/host/app/config"
	"openskill/internal/measure"
	"openskill/lab/skillbench"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// benchUpload measures by how much the memory of a host grows at most while it takes a file of 100 MB and gives it to code.
func (a *cli) benchUpload(ctx context.Context, s *config.Settings, o *benchOptions, _ *skillbench.Native) ([]measure.Row, error) {
	const name, size = "a file of 100 MB", 100_000_000
	if !o.wanted("memory", name) {
		return nil, nil
	}
	skills, err := pythonSkills()
	if err != nil {
		return nil, err
	}
	_, addr, stop, err := a.serveSkills(ctx, s, skills, map[skill.ID]string{skill.RunCode: `{"language":"python","code":"open('x', 'wb').write(b'x')"}`})
	if err != nil {
		a.say("memory: %v", err)
		return nil, nil
	}
	defer stop()
	if err := sendFile(ctx, "http://"+addr, 1_000_000); err != nil { // buffers and caches
		return nil, err
	}
	debug.FreeOSMemory()
	held := func() int64 { n, _ := skillbench.Held(os.Getpid()); return n }
	before := held()
	var most atomic.Int64
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			most.Store(max(most.Load(), held()))
			select {
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	err = sendFile(ctx, "http://"+addr, size)
	close(ended)
	<-watched
	if err != nil {
		return nil, err
	}
	row := measure.Row{
		Suite: "memory", Case: name, Variant: "uploaded, and read by code", Baseline: "openskill", N: 1, Bytes: most.Load() - before,
		Note: "the most while it was sent and read, with its client in the same process",
	}
	goal := measure.Size(16_000_000)
	row.Goals = append(row.Goals, goal.Of(&row, &row))
	return []measure.Row{row}, nil
}

// sendFile uploads size random bytes, which code counts.
func sendFile(ctx context.Context, url string, size int64) error {
	random := rand.NewChaCha8([32]byte{1})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/files", io.LimitReader(random, size))
	if err != nil {
		return err
	}
	req.ContentLength = size
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var made skill.FileInfo
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil || made.Size != size {
		return fmt.Errorf("the upload is answered %s", res.Status)
	}
	c, err := client.New(url, nil)
	if err != nil {
		return err
	}
	r, err := c.RunCode(ctx, client.Code{
		Language: "python", Files: []skill.FileRef{{Name: "in", ID: made.ID}},
		Code: "n = 0\nwith open('in', 'rb') as f:\n    while b := f.read(1 << 20):\n        n += len(b)\nn",
	})
	if err != nil {
		return err
	}
	var data struct{ Value int64 }
	if err := json.Unmarshal(r.Data, &data); err != nil || data.Value != size {
		return fmt.Errorf("the code counts %s, want %d", r.Data, size)
	}
	return nil
}
