package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/sdk/client"
)

// localHost is a host in this process, whose operator chats.
type localHost struct {
	*app.Host

	cool context.CancelFunc // ends what is done ahead of calls
	warm sync.WaitGroup
}

// openLocal opens a host, and a client of its API. ahead gets its skills ready before they are
// called, for a chat of several turns.
func (a *cli) openLocal(ctx context.Context, s *config.Settings, ahead bool) (*localHost, *client.Client, error) {
	log := slog.New(slog.NewJSONHandler(cleanWriter{a.stderr}, &slog.HandlerOptions{Level: level(s, slog.LevelError)}))
	h, err := app.Open(s, &app.Options{Log: log}) // nothing to wait for
	if err != nil {
		return nil, nil, hostFailed(err)
	}
	a.skipped(h)
	var c *client.Client
	transport, err := h.Transport()
	if err == nil {
		c, err = client.New("http://localhost", &client.Options{HTTP: &http.Client{Transport: transport}, UserAgent: chatAgent})
	}
	if err != nil {
		_ = h.Close() // nothing was called
		return nil, nil, hostFailed(err)
	}
	warming, cool := context.WithCancel(ctx)
	local := &localHost{Host: h, cool: cool}
	local.warm.Go(func() { h.KeepUp(warming) })
	if ahead {
		local.warm.Go(func() { prepareAll(warming, h) })
	}
	return local, c, nil
}

func (l *localHost) close() {
	l.cool()
	l.warm.Wait()
	_ = l.Close() // everything is answered
}

// chatAgent is the User-Agent of a chat.
const chatAgent = "openskill-chat"

// heard tells hear what happens in a turn, and gives what it came to.
func heard(events iter.Seq2[client.Event, error], hear func(client.Event)) (answer *client.ChatAnswer, err error) {
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		hear(e)
		answer = e.Answer
	}
	return answer, nil
}

// mostSkills is how many skills a list shows.
const mostSkills = 1000

// atMost gives the first entries of a list, most of them at most.
func atMost[T any](list iter.Seq2[*T, error], most int) (out []T, err error) {
	for one, err := range list {
		if err != nil {
			return nil, err
		}
		if out = append(out, *one); len(out) >= most {
			break
		}
	}
	return out, nil
}

// toolNames reads the names and descriptions of tools in the words of OpenAI.
func toolNames(b json.RawMessage) (out []entry, err error) {
	var list []struct {
		Function entry `json:"function"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("cannot list the tools: %w", err)
	}
	for _, t := range list {
		out = append(out, t.Function)
	}
	return out, nil
}

// entry is something with a name and a description.
type entry struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}
