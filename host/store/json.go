package store

import (
	"bytes"
	"errors"
	"strings"

	"openskill/internal/strictjson"
)

// JSONFits reports whether JSONB takes raw and gives back an equal text. It does not take
// \u0000 and halves of surrogate pairs, writes out every digit of an exponent, drops the sign
// of zero, and keeps the last of a doubled key. JSONFits rather says no.
func JSONFits(raw []byte) bool {
	whole := append(append([]byte(`{"":`), raw...), '}')
	if strictjson.Object(whole, func(_, value []byte) error {
		if !bytes.Equal(value, bytes.TrimSpace(raw)) {
			return errors.New("more than one value")
		}
		return numbersFit(value)
	}) != nil {
		return false
	}
	for i := bytes.IndexByte(raw, '\\'); i >= 0 && i < len(raw); i++ {
		if raw[i] == '\\' {
			if i++; bytes.HasPrefix(raw[i:], []byte("u0000")) {
				return false
			}
		}
	}
	return true
}

// numbersFit refuses a JSON text with a number that JSONB would give back as another text.
func numbersFit(raw []byte) error {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case c == '-' || c >= '0' && c <= '9':
			begin := i
			for i+1 < len(raw) && strings.IndexByte("+-.eE0123456789", raw[i+1]) >= 0 {
				i++
			}
			number := raw[begin : i+1]
			if len(number) > 1000 || bytes.ContainsAny(number, "eE") || c == '-' && len(bytes.Trim(number, "-0.")) == 0 {
				return errors.New("the number would change")
			}
		}
	}
	return nil
}
