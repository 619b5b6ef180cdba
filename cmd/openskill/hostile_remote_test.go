//go:build !race

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"openskill/examples/hostile"
	"openskill/host/selftest"
	"openskill/sdk/skill"
)

// remoteTarget is a host of another process on this machine, as HTTP shows it. It has one
// tenant: the one that the host takes its callers for.
type remoteTarget struct {
	URL    string       // as in http://127.0.0.1:8000
	Data   string       // its data folder, which package hostile has planted; "" for none
	Hidden []string     // texts that no answer may hold
	Client *http.Client // nil: one of its own

	// Own are skills that the host has without an upload.
	Own map[skill.ID]bool

	selftest.Tree // of the host's process
}

var _ selftest.Target = (*remoteTarget)(nil)

func (r *remoteTarget) client() *http.Client {
	if r.Client != nil {
		return r.Client
	}
	return &http.Client{Timeout: time.Minute}
}

// answer asks and reads all of an answer.
func (r *remoteTarget) answer(ctx context.Context, method, path, contentType string, body []byte) (int, []byte, error) {
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
	return &skill.Error{Op: "selftest", Code: b.Error.Code, Message: b.Error.Message, Details: b.Error.Details}
}

// Add implements [selftest.Target], as do the methods below. A busy host is asked again.
func (r *remoteTarget) Add(ctx context.Context, _ string, u *hostile.Upload) (skill.ID, error) {
	if r.Own[u.ID] {
		return u.ID, nil
	}
	form, contentType, err := selftest.Encode(u)
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
		time.Sleep(100 * time.Millisecond)
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
func (r *remoteTarget) Enable(ctx context.Context, id skill.ID) error {
	status, body, err := r.answer(ctx, http.MethodPost, "/skills/"+url.PathEscape(string(id))+":enable", "application/json", []byte("{}"))
	if err != nil {
		return err
	}
	return refusal(status, body)
}

// Remove deletes the one version.
func (r *remoteTarget) Remove(ctx context.Context, _ string, id skill.ID) {
	if r.Own[id] {
		return
	}
	_, _, _ = r.answer(ctx, http.MethodDelete, "/skills/"+url.PathEscape(string(id))+"/versions/"+hostile.Version, "", nil)
}

// Invoke leaves when ctx ends, which the host sees by the connection.
func (r *remoteTarget) Invoke(ctx context.Context, _ string, id skill.ID, input json.RawMessage) *skill.Result {
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
func (r *remoteTarget) Health(ctx context.Context) error {
	status, _, err := r.answer(ctx, http.MethodGet, "/healthz", "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/healthz answers %d", status)
	}
	return err
}

// Usage counts but for goroutines and memory: a host of another process cannot be told
// to give back what it does not need.
func (r *remoteTarget) Usage(context.Context) selftest.Usage {
	u := r.Tree.Usage()
	u.Memory = -1
	return u
}

// State is the data folder and the ids of the catalogue that are no hostile case's.
func (r *remoteTarget) State(ctx context.Context) (string, error) {
	sum, err := selftest.DataState(r.Data)
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
func (r *remoteTarget) Secrets() []string { return r.Hidden }

// Planted is Data.
func (r *remoteTarget) Planted() string { return r.Data }

// Address is that of URL.
func (r *remoteTarget) Address() string { return strings.TrimPrefix(r.URL, "http://") }
