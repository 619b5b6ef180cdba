package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"openskill/examples/hostile"
	"openskill/host/selftest"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// kills is how often a host is killed in the middle of uploads.
const kills = 5

// killHost is [killHosts] with this program.
func killHost(ctx context.Context) (selftest.Durability, error) {
	exe, err := os.Executable()
	if err != nil {
		return selftest.Durability{}, err
	}
	return killHosts(ctx, exe)
}

// killHosts starts a program as a host of its own, kills it as the kernel may while it
// takes uploads, and looks at what the next one has of what was acknowledged.
func killHosts(ctx context.Context, exe string) (d selftest.Durability, err error) {
	dir, err := os.MkdirTemp("", "openskill-selftest-")
	if err != nil {
		return d, err
	}
	defer os.RemoveAll(dir)
	skills := filepath.Join(dir, "skills")
	if err := os.Mkdir(skills, 0o700); err != nil {
		return d, err
	}
	acknowledged := map[skill.ID]bool{}
	for n := 0; ; n++ {
		h, err := startHost(ctx, exe, dir, skills)
		if err != nil {
			return d, err
		}
		if n == kills {
			d.Acknowledged = len(acknowledged)
			d.Lost, d.Half, err = h.look(ctx, acknowledged)
			return d, errors.Join(err, h.end())
		}
		began, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case <-began:
			case <-ctx.Done():
			}
			moment := time.NewTimer(time.Duration(rand.IntN(600)) * time.Millisecond) //nolint:gosec // any moment
			defer moment.Stop()
			select {
			case <-moment.C:
			case <-ctx.Done():
			}
			_ = h.cmd.Process.Kill() // SIGKILL; it may have ended
		}()
		for i := 0; ; i++ {
			u := hostile.Harmful(fmt.Sprintf("kill %d %d", n, i), time.Second)
			_, err := h.client.Upload(ctx, &client.Upload{Archive: u.Archive, Module: u.Module, Manifest: u.Manifest})
			if err == nil {
				_, err = h.client.Enable(ctx, u.ID, "")
			}
			if err != nil {
				if i == 0 {
					close(began) // it takes none, which shows below
				}
				break // it is dead
			}
			acknowledged[u.ID] = true
			if i == 0 {
				close(began)
			}
		}
		<-ended
		_ = h.cmd.Wait() // the error says that it was killed
		d.Ends++
		if ctx.Err() != nil {
			return d, context.Cause(ctx)
		}
	}
}

// aHost is a host in a process of its own.
type aHost struct {
	cmd    *exec.Cmd
	client *client.Client
}

func startHost(ctx context.Context, exe, dir, skills string) (*aHost, error) {
	cmd := exec.CommandContext(ctx, exe, "serve", "--listen", "127.0.0.1:0", "--skills", skills, "--state", filepath.Join(dir, "state"))
	cmd.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "OPENSKILL_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("a host did not start: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	c, err := client.New(url, nil)
	return &aHost{cmd: cmd, client: c}, err
}

// look counts the acknowledged uploads that are not there, and versions that are there
// and do not answer.
func (h *aHost) look(ctx context.Context, acknowledged map[skill.ID]bool) (lost, half int, err error) {
	there := map[skill.ID]bool{}
	for d, err := range h.client.Skills(ctx) {
		if err != nil {
			return 0, 0, err
		}
		if d.ID != skill.RunCode { // built in
			there[d.ID] = true
		}
	}
	for id := range acknowledged {
		if !there[id] {
			lost++
		}
	}
	for id := range there {
		// One that was not acknowledged may be there, disabled, but whole.
		if _, err := h.client.Enable(ctx, id, ""); err != nil {
			half++
			continue
		}
		if r, err := h.client.Invoke(ctx, id, json.RawMessage(hostile.HarmOf(hostile.Harmless))); err != nil || !r.Success {
			half++
		}
	}
	return lost, half, nil
}

// end asks the host to stop.
func (h *aHost) end() error {
	if err := h.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return h.cmd.Wait()
}
