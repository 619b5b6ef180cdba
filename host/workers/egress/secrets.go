package egress

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"openskill/internal/outgoing"
	"openskill/sdk/skill"
)

// swap puts the values of secrets into one request, and placeholders into its response. nil does
// nothing.
type swap struct {
	secrets []skill.Secret // whose values the target gets
	seen    []string       // what a response is searched for, and behind each what takes its place
}

// swapFor gives the swap of a request; nil where no secret is for its target.
func swapFor(secrets []skill.Secret, method string, t *target) *swap {
	s := &swap{}
	for _, secret := range secrets {
		permits := func(r skill.HTTPRule) bool { return outgoing.Permits(r, method, t.origin, t.path) }
		if secret.Placeholder == "" || secret.Value == "" || !slices.ContainsFunc(secret.For, permits) {
			continue
		}
		s.secrets = append(s.secrets, secret)
	}
	if len(s.secrets) == 0 {
		return nil
	}
	// Longer values first: one may begin with another, and its rest would be left.
	slices.SortStableFunc(s.secrets, func(a, b skill.Secret) int { return len(b.Value) - len(a.Value) })
	for _, secret := range s.secrets {
		for _, form := range formsOf(secret.Value) {
			s.look(form, secret.Placeholder)
		}
	}
	return s
}

// formsOf are the forms of a value that servers answer with: as it is, and as URLs and JSON of
// usual libraries have it.
func formsOf(v string) []string {
	forms := []string{v, inPath(v), inQuery(v), inJSON(v), strings.ReplaceAll(inJSON(v), "/", `\/`)}
	for _, form := range forms[1:3] {
		forms = append(forms, escaped.ReplaceAllStringFunc(form, strings.ToLower))
	}
	if b, err := json.Marshal(v); err == nil {
		forms = append(forms, string(b[1:len(b)-1]))
	}
	return forms
}

var escaped = regexp.MustCompile("%[0-9A-F]{2}")

// The forms of a value in which it is sent.
func inPath(v string) string  { return url.PathEscape(v) }
func inQuery(v string) string { return url.QueryEscape(v) }
func inJSON(v string) string  { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) }
func asIs(v string) string    { return v }

// look has responses searched for a text.
func (s *swap) look(text, instead string) {
	if !slices.Contains(s.seen, text) {
		s.seen = append(s.seen, text, instead)
	}
}

// fill puts values into a text, in the form that belongs there, up to most bytes.
func (s *swap) fill(text string, most int, form func(string) string) (string, error) {
	for i := range s.secrets {
		p, v := s.secrets[i].Placeholder, form(s.secrets[i].Value)
		n := strings.Count(text, p)
		if n == 0 {
			continue
		}
		if size := len(text) + n*(len(v)-len(p)); size > most {
			return "", tooLarge("the request is too large with the values of its placeholders: a part has %d bytes, the limit is %d", size, most)
		}
		text = strings.ReplaceAll(text, p, v)
	}
	return text, nil
}

// target gives where a request goes, with values.
func (s *swap) target(t *target) (*target, error) {
	if s == nil {
		return t, nil
	}
	to := *t
	var err error
	if to.path, err = s.fill(t.path, maxURL, inPath); err != nil {
		return nil, err
	}
	to.query, err = s.fill(t.query, maxURL, inQuery)
	return &to, err
}

// header puts values into headers, also into those of basic authentication. What comes back is to
// be searched, so the response must not be compressed.
func (s *swap) header(h http.Header, most int) error {
	if s == nil {
		return nil
	}
	size := 0
	for name, values := range h {
		for i, given := range values {
			value, err := s.fill(given, most, asIs)
			if err != nil {
				return err
			}
			if name == "Authorization" {
				if value, err = s.basic(value, most); err != nil {
					return err
				}
			}
			if size += len(name) + len(value) + 4; size > most {
				return tooLarge("the headers are too large with the values of their placeholders; the limit is %d bytes", most)
			}
			values[i] = value
		}
	}
	h["Accept-Encoding"] = []string{"identity"}
	return nil
}

// basic puts values into name and password of basic authentication.
func (s *swap) basic(value string, most int) (string, error) {
	scheme, encoded, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return value, nil
	}
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return value, nil //nolint:nilerr // it goes out as the script wrote it
	}
	filled, err := s.fill(string(text), most, asIs)
	if err != nil || filled == string(text) {
		return value, err
	}
	to := base64.StdEncoding.EncodeToString([]byte(filled))
	s.look(to, encoded)
	return scheme + " " + to, nil
}

// body puts values into a body, in the form of its type.
func (s *swap) body(b []byte, contentType string, most int) ([]byte, error) {
	if s == nil || len(b) == 0 || !slices.ContainsFunc(s.secrets, func(x skill.Secret) bool { return bytes.Contains(b, []byte(x.Placeholder)) }) {
		return b, nil
	}
	form := asIs
	switch contentType = strings.ToLower(contentType); {
	case strings.Contains(contentType, "json"):
		form = inJSON
	case strings.Contains(contentType, "x-www-form-urlencoded"):
		form = inQuery
	}
	text, err := s.fill(string(b), most, form)
	return []byte(text), err
}

// hide puts placeholders into what came back.
func (s *swap) hide(text string) string {
	if s == nil {
		return text
	}
	for i := 0; i < len(s.seen); i += 2 {
		if strings.Contains(text, s.seen[i]) {
			return strings.NewReplacer(s.seen...).Replace(text)
		}
	}
	return text
}

// hideBody is hide of a body, up to most bytes.
func (s *swap) hideBody(b []byte, most int) ([]byte, error) {
	if s == nil {
		return b, nil
	}
	hidden := s.hide(string(b))
	if len(hidden) > most {
		return nil, tooLarge("the response is too large; the limit is %d bytes", most)
	}
	return []byte(hidden), nil
}

// hideError is hide of an error: what a server sent may be in it.
func (s *swap) hideError(err error) error {
	if s == nil || err == nil {
		return err
	}
	if text := err.Error(); s.hide(text) != text {
		return errors.New(s.hide(text))
	}
	return err
}
