package config

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Secrets lists every value that nobody may see, the longest first, for those who take
// them out of a text before it leaves the machine.
func (s *Settings) Secrets() []string {
	var out []string
	add := func(text string) {
		if text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	v := reflect.ValueOf(s).Elem()
	for _, f := range fields() {
		if v.Field(f.index).Kind() != reflect.String {
			continue
		}
		text := v.Field(f.index).String()
		if f.secret {
			add(text)
		}
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			if password, has := u.User.Password(); has {
				add(password)
				add(u.User.String())
			}
			add(u.RawQuery)
			for _, values := range u.Query() {
				for _, value := range values {
					add(value)
				}
			}
		}
		if f.env == "OPENSKILL_ENV_ALLOW" {
			for entry := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
				_, value, _ := strings.Cut(entry, "=")
				add(strings.TrimSpace(value))
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}
