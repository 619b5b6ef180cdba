package store

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// Mark is the row behind which a page begins, of rows in the order of a time and a UUID.
type Mark struct {
	At time.Time
	ID string
}

// Cursor is the mark as callers get it.
func (m Mark) Cursor() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(m.At.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(b, m.ID...))
}

// ParseCursor reads what Cursor wrote.
func ParseCursor(op, cursor string) (Mark, error) {
	const size = 8 + 36
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err == nil && len(b) == size && len(cursor) == base64.RawURLEncoding.EncodedLen(size) { // it passes over ends of lines
		when := time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC()
		id := string(b[8:])
		if IsUUID(id) && id == strings.ToLower(id) && when.Year() >= 1 && when.Year() <= 9999 { // as PostgreSQL reads times
			return Mark{when, id}, nil
		}
	}
	return Mark{}, &skill.Error{
		Op: op, Code: skill.InvalidArgument, Subject: "cursor",
		Message: "invalid cursor: use the next value of the previous page, or omit it for the first page",
	}
}

// IsUUID reports whether s is a UUID as the columns hold it.
func IsUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9' || s[i] != c) && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}
