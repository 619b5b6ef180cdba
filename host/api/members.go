package api

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"openskill/internal/strictjson"
)

// member is a key that a body may have, and who reads its value, which is a part of the
// body.
type member struct {
	name string
	read func(field string, value []byte) error
}

// readMembers reads an object that has these keys and no others, each at most once.
// within is where it stands, as in "options."; "" for the whole body.
func readMembers(b []byte, within string, members []member) error {
	return syntaxError(strictjson.Object(b, memberOf(members, within)))
}

// parseMembers is readMembers for a whole body, and gives its values too.
func parseMembers(b []byte, depth int, members []member) (map[string]any, error) {
	all, err := strictjson.Decode(b, depth, memberOf(members, ""))
	return all, syntaxError(err)
}

func memberOf(members []member, within string) func(key, value []byte) error {
	return func(key, value []byte) error {
		field := within + string(key)
		i := slices.IndexFunc(members, func(m member) bool { return m.name == string(key) })
		if i < 0 {
			return invalidField(field, "is not a known key; "+namesOf(members))
		}
		return members[i].read(field, value)
	}
}

// namesOf lists the members, which are one or more, as the end of a sentence.
func namesOf(members []member) string {
	last := len(members) - 1
	names := members[0].name
	if last == 0 {
		return names + " is the only one"
	}
	for _, m := range members[1:last] {
		names += ", " + m.name
	}
	return names + " and " + members[last].name + " are"
}

// text reads a string of 1 to most characters; most 0: of any length, also none.
func text(to *string, most int) func(string, []byte) error {
	return func(field string, value []byte) error {
		if value[0] != '"' || json.Unmarshal(value, to) != nil {
			return invalidField(field, "must be a string")
		}
		if n := utf8.RuneCountInString(*to); most > 0 && (n == 0 || n > most) {
			return invalidField(field, "must be 1 to "+strconv.Itoa(most)+" characters long")
		}
		return nil
	}
}

// count reads a whole number that is not zero, because zero is "no opinion" to whom it
// goes. What is too large for an int32 becomes the largest one: the numbers that are
// read by this may only lower a limit, and none is higher.
func count(to *int) func(string, []byte) error {
	return func(field string, value []byte) error {
		n, ok := wholeNumber(value)
		if !ok || n < 1 {
			return invalidField(field, "must be a whole number, 1 or more")
		}
		*to = int(min(n, math.MaxInt32))
		return nil
	}
}

// flag reads true or false.
func flag(to *bool) func(string, []byte) error {
	return func(field string, value []byte) error {
		if value[0] != 't' && value[0] != 'f' {
			return invalidField(field, "must be true or false")
		}
		*to = value[0] == 't'
		return nil
	}
}

// orNull is read, where the value is not null, which is as if the key were not there.
func orNull(read func(string, []byte) error) func(string, []byte) error {
	return func(field string, value []byte) error {
		if value[0] == 'n' {
			return nil
		}
		return read(field, value)
	}
}
