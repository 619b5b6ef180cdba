package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// maxEntry is the length in bytes of the longest entry. With what variables add its
// headers stay within what the host sends.
const maxEntry = 8 << 10

// address is where a skill is, and what a request there carries.
type address struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// ours are the headers that the runner writes.
var ours = [...]string{"Accept", "Content-Type", "X-Trace-Id", "Traceparent"}

// read reads an entry. Whether its address may be asked is for who asks it to say.
func read(folder, entry string) (*address, error) {
	refuse := func(err error, format string, args ...any) error {
		return &skill.Error{
			Op: "remote.read", Code: skill.InvalidManifest, Subject: skill.CleanText(entry, 80), Err: err,
			Message: skill.CleanText("the entry "+fmt.Sprintf(format, args...), skill.MaxMessage),
		}
	}
	b, err := content(folder, entry)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, refuse(err, `was not found in the skill's folder; add a file such as {"url": "https://tools.example.com/skills/echo:invoke"}`)
	case err != nil:
		return nil, refuse(err, "cannot be read: it must be a regular file within the skill's folder")
	case len(b) > maxEntry:
		return nil, refuse(nil, "has more than %d bytes", maxEntry)
	}
	var a address
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return nil, refuse(err, `must be one JSON object with url and optional headers`)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse(nil, "must be one JSON object with nothing after it")
	}
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, refuse(err, "must have a url such as https://tools.example.com/skills/echo:invoke")
	case u.User != nil || u.Fragment != "":
		return nil, refuse(nil, "has a url with a user name or fragment; send a key in headers, as ${NAME}")
	}
	seen := map[string]bool{}
	for name := range a.Headers {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if seen[name] || slices.Contains(ours[:], name) {
			return nil, refuse(nil, "has a duplicate or reserved header %s", name)
		}
		seen[name] = true
	}
	return &a, nil
}

// content is the beginning of a file in folder.
func content(folder, entry string) ([]byte, error) {
	local, err := filepath.Localize(entry)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(local)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := root.Open(local)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxEntry+1))
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// headers are those of a request, with the variables that were granted. No error repeats
// a value.
func (a *address) headers(call *skill.Call) (map[string]string, error) {
	granted := make(map[string]string, len(call.Grants.Env))
	for _, v := range call.Grants.Env {
		name, value, _ := strings.Cut(v, "=")
		granted[name] = value
	}
	refuse := func(format string, args ...any) error {
		return &skill.Error{
			Op: "remote.headers", Code: skill.ToolInvocationError, Subject: string(call.SkillID),
			Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage),
		}
	}
	out := make(map[string]string, len(a.Headers)+len(ours))
	for name, value := range a.Headers {
		var missing string
		value = variable.ReplaceAllStringFunc(value, func(s string) string {
			key := s[2 : len(s)-1]
			v, ok := granted[key]
			if !ok {
				missing = key
			}
			return v
		})
		switch {
		case missing != "":
			return nil, refuse("the header %s needs the variable %s, which is not granted: ask for it in permissions.env and have the operator allow it in OPENSKILL_ENV_ALLOW", name, missing)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			return nil, refuse("the header %s has an invalid character; check its variables", name)
		}
		out[name] = value
	}
	out["Content-Type"], out["Accept"], out["X-Trace-Id"] = "application/json", "application/json", string(call.TraceID)
	if call.TraceParent != "" {
		out["Traceparent"] = call.TraceParent
	}
	return out, nil
}
