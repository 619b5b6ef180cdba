package mcp

import (
	"encoding/base64"
	"strings"
)

// pageSize is how many tools, resources or prompts a page has at most.
const pageSize = 100

// cursors are opaque to clients: the list that they are of, and the last key that was
// given, so that a page goes on at the right place though the catalogue changed.
func encodeCursor(list, last string) string {
	if last == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(list + "\x00" + last))
}

func decodeCursor(list, cursor string) (last string, err error) {
	if cursor == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	of, last, ok := strings.Cut(string(b), "\x00")
	if err != nil || !ok || of != list || last == "" {
		return "", invalid("mcpserver.cursor", "cursor", "invalid cursor: use nextCursor of the previous page of the same list")
	}
	return last, nil
}

// pageOf gives those of a sorted list whose keys come after last, at most n, and the
// key to go on after.
func pageOf[T any](list []T, key func(T) string, last string, n int) (page []T, next string) {
	from := 0
	for from < len(list) && last != "" && key(list[from]) <= last {
		from++
	}
	to := min(from+n, len(list))
	if to < len(list) {
		next = key(list[to-1])
	}
	return list[from:to], next
}
