package selftest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
)

// Remote is a host of another process on this machine, as HTTP shows it. It has one
// tenant: the one that the host takes its callers for.
type Remote struct {
	URL    string       // as in http://127.0.0.1:8000
	Data   string       // its data folder, which package hostile has planted; "" for none
	Hidden []string     // texts that no answer may hold
	Client *http.Client // nil: one of its own

	// Own are skills that the host has without an upload.
	Own map[skill.ID]bool

	Tree // of the host's process
}

var _ Target = (*Remote)(nil)

func (r *Remote) client() *http.Client {
	if r.Client != nil {
		return r.Client
	}
	return &http.Client{Timeout: time.Minute}
}

// answer asks and reads all of an answer.
func (r *Remote) answer(ctx context.Context, method, path, contentType string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := r.client().Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, b, err
}

// refusal is the error of an answer; nil for one that is none.
func refusal(status int, body []byte) error {
	if status < http.StatusBadRequest {
		return nil
	}
	var b struct{ Error *skill.ResultError }
	if json.Unmarshal(body, &b) != nil || b.Error == nil || b.Error.Status != status {
		return fmt.Errorf("an answer %d that is no error of a host: %.200s", status, body)
	}
	return &skill.Error{Op: "selftest.Remote", Code: b.Error.Code, Message: b.Error.Message, Details: b.Error.Details}
}

// Add implements [Target], as do the methods below. A busy host is asked again.
func (r *Remote) Add(ctx context.Context, _ string, u *hostile.Upload) (skill.ID, error) {
	if r.Own[u.ID] {
		return u.ID, nil
	}
	form, contentType, err := encode(u)
	if err != nil {
		return "", err
	}
	var status int
	var body []byte
	for {
		if status, body, err = r.answer(ctx, http.MethodPost, "/skills", contentType, form); err != nil {
			return "", err
		}
		if status != http.StatusTooManyRequests {
			break
		}
		wait(ctx, 100*time.Millisecond)
	}
	err = refusal(status, body)
	if skill.CodeOf(err) == skill.Conflict && u.ID != "" {
		err = nil // it is there since the first try
	}
	if err != nil {
		return "", err
	}
	var made struct{ ID skill.ID }
	if status == http.StatusCreated && (json.Unmarshal(body, &made) != nil || made.ID != u.ID) {
		return "", fmt.Errorf("the answer to an upload of %s is %.200s", u.ID, body)
	}
	return u.ID, r.Enable(ctx, u.ID)
}

// Enable lets an uploaded skill be called.
func (r *Remote) Enable(ctx context.Context, id skill.ID) error {
	status, body, err := r.answer(ctx, http.MethodPost, "/skills/"+url.PathEscape(string(id))+":enable", "application/json", []byte("{}"))
	if err != nil {
		return err
	}
	return refusal(status, body)
}

// IDs are those of the catalogue.
func (r *Remote) IDs(ctx context.Context) (map[skill.ID]bool, error) {
	all := map[skill.ID]bool{}
	for cursor := ""; ; {
		status, body, err := r.answer(ctx, http.MethodGet, "/skills?limit=100"+cursor, "", nil)
		if err == nil {
			err = refusal(status, body)
		}
		var page struct {
			Data []skill.Descriptor
			Next string
		}
		if err == nil {
			err = json.Unmarshal(body, &page)
		}
		if err != nil {
			return nil, err
		}
		for _, d := range page.Data {
			all[d.ID] = true
		}
		if page.Next == "" {
			return all, nil
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// encode makes the form of an upload.
func encode(u *hostile.Upload) (form []byte, contentType string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part := func(name, file string, content []byte) {
		if content == nil || err != nil {
			return
		}
		var to io.Writer
		if to, err = w.CreateFormFile(name, file); err == nil {
			_, err = to.Write(content)
		}
	}
	part("archive", "skill.zip", u.Archive)
	part("manifest", "skill.yaml", u.Manifest)
	part("module", "main.wasm", u.Module)
	err = errors.Join(err, w.Close())
	return b.Bytes(), w.FormDataContentType(), err
}

// Remove deletes the one version.
func (r *Remote) Remove(ctx context.Context, _ string, id skill.ID) {
	if r.Own[id] {
		return
	}
	_, _, _ = r.answer(ctx, http.MethodDelete, "/skills/"+url.PathEscape(string(id))+"/versions/"+hostile.Version, "", nil)
}

// Invoke leaves when ctx ends, which the host sees by the connection.
func (r *Remote) Invoke(ctx context.Context, _ string, id skill.ID, input json.RawMessage) *skill.Result {
	failed := func(code skill.Code, message string) *skill.Result {
		return skill.Failure(id, "", skill.Meta{}, &skill.Error{Code: code, Message: message})
	}
	status, body, err := r.answer(ctx, http.MethodPost, "/skills/"+url.PathEscape(string(id))+":invoke", "application/json", fmt.Appendf(nil, `{"input": %s}`, input))
	switch {
	case ctx.Err() != nil:
		return failed(skill.Cancelled, "this caller left")
	case err != nil:
		return failed(skill.Internal, err.Error())
	}
	var res skill.Result
	if json.Unmarshal(body, &res) != nil || res.Success != (res.Error == nil) || res.Error != nil && res.Error.Status != status {
		return failed(skill.Internal, "")
	}
	return &res
}

// Health asks /healthz.
func (r *Remote) Health(ctx context.Context) error {
	status, _, err := r.answer(ctx, http.MethodGet, "/healthz", "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/healthz answers %d", status)
	}
	return err
}

// Usage counts but for goroutines and memory: a host of another process cannot be told
// to give back what it does not need.
func (r *Remote) Usage(context.Context) Usage {
	u := r.Tree.Usage()
	u.Memory = -1
	return u
}

// State is the data folder and the ids of the catalogue that are no hostile case's.
func (r *Remote) State(ctx context.Context) (string, error) {
	sum, err := DataState(r.Data)
	if err != nil {
		return "", err
	}
	status, body, err := r.answer(ctx, http.MethodGet, "/skills?limit=100", "", nil)
	if err = errors.Join(err, refusal(status, body)); err != nil {
		return "", err
	}
	var list struct{ Data []skill.Descriptor }
	if err := json.Unmarshal(body, &list); err != nil {
		return "", err
	}
	for _, d := range list.Data {
		if d.Trust != skill.Community {
			sum += " " + string(d.ID) + " " + d.Digest
		}
	}
	return sum, nil
}

// Secrets are Hidden.
func (r *Remote) Secrets() []string { return r.Hidden }

// Planted is Data.
func (r *Remote) Planted() string { return r.Data }

// Address is that of URL.
func (r *Remote) Address() string { return strings.TrimPrefix(r.URL, "http://") }

// Crash kills the process below that uses processors without pause, which is the worker
// of a loop, of those but a few. It reports whether there was one.
func (t *Tree) Crash(but []int) bool {
	pid := t.Busiest(but)
	if pid == 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	return err == nil && p.Kill() == nil
}

// DataState is a digest of a planted data folder, byte by byte, but for what a case
// itself swaps from outside. "" has one too.
func DataState(dir string) (string, error) {
	h := sha256.New()
	if dir == "" {
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || strings.HasPrefix(rel, ".") || rel == hostile.Swapped {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%q %v %d\n", rel, info.Mode(), info.ModTime().UnixNano()) // a hash takes everything
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			_, _ = fmt.Fprintf(h, "%q\n", to) // as above
			return err
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			_, _ = h.Write(b) // as above
			return err
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
