package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// keysGood is how long keys stay good of a set that cannot be read any more.
const keysGood = time.Hour

// source is where a key set comes from.
type source interface {
	// read gives the whole set and what it was read from, or nil if that is as it was: last
	// is what it gave with the last set that was good. It is called by one goroutine at a
	// time.
	read(ctx context.Context, last os.FileInfo) ([]byte, os.FileInfo, error)
	// times says how often the set is looked at, and how much time lies at least between
	// two looks: an unknown kid or a failure never makes more.
	times() (every, least time.Duration)
}

// keySet is the public keys of whoever issues tokens.
type keySet struct {
	from source
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	keys    []publicKey
	good    time.Time     // when the set was last known to be as keys says
	tried   time.Time     // when it was last looked at
	looking chan struct{} // closed when the look under way is over; nil: there is none
	problem string        // of the last look
	last    os.FileInfo   // what keys were read from
}

// newKeySet makes a key set. A file is read at once.
func newKeySet(from source, o *Options) (*keySet, error) {
	s := &keySet{from: from, log: o.Log, now: o.Now}
	if f, ok := from.(*keyFile); ok {
		b, info, err := f.load(nil)
		if err == nil {
			s.keys, err = parseKeySet(b)
		}
		if err != nil {
			return nil, wrongOption("OPENSKILL_JWT_JWKS names an unusable file: %v", err)
		}
		s.good, s.tried, s.last = s.now(), s.now(), info
	}
	return s, nil
}

// find gives the key of an algorithm that a token's kid names. A token without one means
// the only key of its algorithm.
func (s *keySet) find(ctx context.Context, alg, kid string) (any, reason) {
	every, least := s.from.times()
	s.mu.Lock()
	looking := s.look(ctx, every)
	none := len(s.current()) == 0
	s.mu.Unlock()
	if none {
		wait(ctx, looking)
	}
	key, why := s.pick(alg, kid)
	if why == "" || none {
		return key, why
	}
	s.mu.Lock()
	looking = s.look(ctx, least)
	s.mu.Unlock()
	if looking == nil {
		return nil, why
	}
	wait(ctx, looking)
	return s.pick(alg, kid)
}

func wait(ctx context.Context, done <-chan struct{}) {
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// look has the set read if it was not for so long, and gives what is closed when a look
// is over, or nil. Where there are no keys it is read as often as it may be. s.mu is held.
func (s *keySet) look(ctx context.Context, after time.Duration) <-chan struct{} {
	if s.looking != nil {
		return s.looking
	}
	if _, least := s.from.times(); len(s.current()) == 0 {
		after = least
	}
	now := s.now()
	if since := now.Sub(s.tried); !s.tried.IsZero() && since >= 0 && since < after {
		return nil
	}
	s.tried, s.looking = now, make(chan struct{})
	go s.read(context.WithoutCancel(ctx), s.looking)
	return s.looking
}

func (s *keySet) read(ctx context.Context, done chan struct{}) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	b, info, err := s.from.read(ctx, last)
	var keys []publicKey
	if err == nil && b != nil {
		keys, err = parseKeySet(b)
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	s.mu.Lock()
	if err == nil {
		s.good = s.now()
		if keys != nil {
			s.keys, s.last = keys, info
		}
	}
	news := problem != s.problem
	s.problem, s.looking = problem, nil
	s.mu.Unlock()
	defer close(done) // whoever waited finds the reason in the log
	if news && problem != "" {
		s.log.LogAttrs(ctx, slog.LevelError, "cannot read the JWT key set; cached keys stay valid for 1 hour", slog.String("error", problem))
	} else if news {
		s.log.LogAttrs(ctx, slog.LevelInfo, "reading the JWT key set works again")
	}
}

// current gives the keys that are good now; s.mu is held.
func (s *keySet) current() []publicKey {
	if s.now().Sub(s.good) >= keysGood {
		return nil
	}
	return s.keys
}

func (s *keySet) pick(alg, kid string) (any, reason) {
	s.mu.Lock()
	keys := s.current()
	s.mu.Unlock()
	if len(keys) == 0 {
		return nil, "no key set is loaded"
	}
	var found any
	for _, k := range keys {
		switch {
		case kid != "" && k.kid == kid && k.alg != alg:
			return nil, "token key is for another algorithm"
		case kid != "" && k.kid == kid:
			return k.key, ""
		case kid == "" && k.alg == alg && found != nil:
			return nil, "token without a key id (kid)"
		case kid == "" && k.alg == alg:
			found = k.key
		}
	}
	if found == nil {
		return nil, "token with an unknown key id (kid)"
	}
	return found, ""
}

// sourceOf reads the setting.
func sourceOf(text string, transport http.RoundTripper) (source, error) {
	if !strings.Contains(text, "://") {
		return &keyFile{name: text}, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return nil, wrongOption("OPENSKILL_JWT_JWKS must be a file or an https URL without user and fragment")
	}
	if !SafeAddress(text) {
		return nil, wrongOption("OPENSKILL_JWT_JWKS must be a file or an https URL; http works on loopback only")
	}
	if transport == nil {
		transport = newTransport()
	}
	return &keyAddress{url: u.String(), client: &http.Client{
		Transport: transport, Timeout: fetchWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// keyFile is a key set on the disk. It is read when its time, size or identity changed.
type keyFile struct{ name string }

func (f *keyFile) times() (every, least time.Duration) { return time.Second, time.Second }

func (f *keyFile) read(_ context.Context, last os.FileInfo) ([]byte, os.FileInfo, error) {
	return f.load(last)
}

func (f *keyFile) load(last os.FileInfo) ([]byte, os.FileInfo, error) {
	info, err := os.Stat(f.name)
	switch {
	case err != nil:
		return nil, nil, plainError(err)
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("not a regular file")
	case last != nil && os.SameFile(last, info) && last.ModTime().Equal(info.ModTime()) && last.Size() == info.Size():
		return nil, last, nil
	}
	file, err := os.Open(f.name)
	if err != nil {
		return nil, nil, plainError(err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, longestSet+1))
	if err != nil {
		return nil, nil, plainError(err)
	}
	return b, info, nil
}

// plainError leaves the path out.
func plainError(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// fetchWithin is the time of one fetch.
const fetchWithin = 5 * time.Second

// keyAddress is a key set on a server that the operator named. Redirects are not
// followed: they would name another one.
type keyAddress struct {
	url    string
	client *http.Client
}

func (a *keyAddress) times() (every, least time.Duration) { return 5 * time.Minute, 30 * time.Second }

func (a *keyAddress) read(ctx context.Context, _ os.FileInfo) ([]byte, os.FileInfo, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("the server responded with status %d", resp.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, longestSet+1))
	return b, nil, err
}
