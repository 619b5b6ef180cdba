package identity

import "strings"

// Credentials are what a request shows, as it came. An edge copies the values out of
// buffers that it does not own.
type Credentials struct {
	Authorization []string // values of the header Authorization, one for each time that it is there
	APIKey        []string // values of the header X-API-Key
	From          string   // the network of the client: networks take turns to have unknown keys looked up
	Query         bool     // credentials are in the query, which logs and histories keep: they prove nothing any more
}

// maxToken is the length, in bytes, of the longest token that is looked at.
const maxToken = 8 << 10

const scheme = "bearer"

// kind is what was shown.
type kind int

const (
	nothing kind = iota
	aKey
	aToken
)

// read finds the one credential that was shown. why is not empty where there is none
// that could be good.
func (c *Credentials) read() (is kind, text string, why reason) {
	switch shown := len(c.Authorization) + len(c.APIKey); {
	case c.Query:
		return nothing, "", "credentials in the query"
	case shown == 0:
		return nothing, "", ""
	case shown > 1:
		return nothing, "", "more than one credential"
	case len(c.APIKey) == 1:
		if text = c.APIKey[0]; !strings.HasPrefix(text, keyPrefix) {
			return nothing, "", "X-API-Key is not a valid key"
		}
		return aKey, text, ""
	}
	value := c.Authorization[0]
	if len(value) > maxToken+64 {
		return nothing, "", "Authorization is too long"
	}
	name, text, _ := strings.Cut(value, " ")
	if !strings.EqualFold(name, scheme) {
		return nothing, "", "Authorization has another scheme"
	}
	text = strings.TrimLeft(text, " ") // RFC 9110, section 11.4: one space or more
	switch {
	case text == "":
		return nothing, "", "Authorization is empty"
	case strings.HasPrefix(text, keyPrefix):
		return aKey, text, ""
	}
	return aToken, text, ""
}
