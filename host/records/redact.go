package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// What stands where something was left out.
const (
	redactedMark = "[redacted]"
	deeperMark   = "[deeper]"
)

// detail bounds what is kept of a payload. The first that fits is taken.
type detail struct {
	kids int // of an array or object
	text int // bytes of a string
}

var details = []detail{{64, 256}, {16, 64}, {4, 24}}

// maxDepth is how deep values are kept, and maxNodes how many.
const (
	maxDepth = 12
	maxNodes = 4096
)

// redacted keeps the shape of data and its short values, with no more bytes of JSON than most.
// left says that something was left out for what it looked like, truncated that
// something was for its size.
func redacted(data []byte, most int) (kept json.RawMessage, left, truncated bool) {
	root, err := parse(data)
	if err != nil { // not JSON: a script's text
		root = &node{kind: textNode, text: strings.ToValidUTF8(string(data), "\uFFFD")}
	}
	for i, d := range details {
		w := writer{detail: d, most: most}
		w.value(root, false)
		if !w.full {
			return w.b.Bytes(), w.left, w.truncated || i > 0
		}
	}
	return nil, true, true
}

// node is a value as it was written, order and doubled keys included.
type node struct {
	kind nodeKind
	text string // of a string; of a number, true, false and null as written
	keys []string
	kids []*node
	more int // values that are too many, or too deep
}

type nodeKind byte

const (
	plainNode nodeKind = iota // true, false, null
	numberNode
	textNode
	arrayNode
	objectNode
)

// parse reads one JSON value. What is deeper or more than the bounds is read over.
func parse(data []byte) (*node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var root *node
	var open []*node // one for each bracket that is open; nil where it is read over
	key, isKey := "", false
	nodes := 0
	for {
		t, err := dec.Token()
		if err != nil {
			if errors.Is(err, io.EOF) && root != nil && len(open) == 0 {
				return root, nil
			}
			return nil, fmt.Errorf("not one JSON value: %w", err)
		}
		if root != nil && len(open) == 0 {
			return nil, errors.New("not one JSON value: more follows")
		}
		if d, ok := t.(json.Delim); ok && (d == '}' || d == ']') {
			open = open[:len(open)-1]
			isKey = objectOpen(open)
			continue
		}
		var parent *node
		if len(open) > 0 {
			parent = open[len(open)-1]
		}
		if isKey && parent != nil {
			key, _ = t.(string) // nothing else is a key
			isKey = false
			continue
		}
		var n *node // nil: it is read over
		switch {
		case root == nil:
			n = newNode(t)
			root = n
		case parent == nil:
		case nodes >= maxNodes || len(parent.kids) >= details[0].kids || len(open) >= maxDepth:
			parent.more++
		default:
			nodes++
			n = newNode(t)
			parent.kids = append(parent.kids, n)
			if parent.kind == objectNode {
				parent.keys = append(parent.keys, key)
			}
		}
		if _, ok := t.(json.Delim); ok {
			open = append(open, n)
		}
		isKey = objectOpen(open)
	}
}

// objectOpen reports whether a key comes next. Within what is read over keys and values
// are all the same.
func objectOpen(open []*node) bool {
	return len(open) > 0 && open[len(open)-1] != nil && open[len(open)-1].kind == objectNode
}

func newNode(t json.Token) *node {
	switch v := t.(type) {
	case json.Delim:
		if v == '{' {
			return &node{kind: objectNode}
		}
		return &node{kind: arrayNode}
	case string:
		return &node{kind: textNode, text: v}
	case json.Number:
		return &node{kind: numberNode, text: v.String()}
	case bool:
		if v {
			return &node{text: "true"}
		}
		return &node{text: "false"}
	}
	return &node{text: "null"}
}

// writer writes what may be kept of values.
type writer struct {
	detail
	most   int
	within int // texts that are JSON, around this one
	b      bytes.Buffer

	left, truncated, full bool
}

func (w *writer) raw(s string) {
	if w.full = w.full || w.b.Len()+len(s) > w.most; !w.full {
		w.b.WriteString(s)
	}
}

func (w *writer) quoted(s string) {
	b, _ := json.Marshal(s) // a string can always be written
	w.raw(string(b))
}

// value writes n; secret says that it stands where a secret stands.
func (w *writer) value(n *node, secret bool) {
	switch {
	case w.full:
	case n.kind == plainNode: // it tells nothing
		w.raw(n.text)
	case secret:
		w.left = true
		w.quoted(redactedMark)
	case n.kind == numberNode:
		if len(n.text) > 24 {
			w.left = true
			w.quoted(redactedMark)
			return
		}
		w.raw(n.text)
	case n.kind == textNode:
		w.text(n.text)
	case n.kind == arrayNode:
		w.array(n)
	default:
		w.object(n)
	}
}

func (w *writer) text(s string) {
	if len(s) > w.detail.text {
		// The beginning of a text may be the beginning of a secret: all of it goes.
		w.left, w.truncated = true, true
		w.quoted(fmt.Sprintf("[%d bytes]", len(s)))
		return
	}
	kept := scrub(s)
	if inner, ok := w.inner(s); ok {
		kept = inner
	}
	w.left = w.left || kept != s
	w.quoted(kept)
}

// inner is what is kept of a text that is JSON itself, as tools like to hand it on.
func (w *writer) inner(s string) (kept string, ok bool) {
	if trimmed := strings.TrimSpace(s); trimmed == "" || !strings.ContainsRune(`{["`, rune(trimmed[0])) {
		return "", false
	}
	n, err := parse([]byte(s))
	if err != nil {
		return "", false
	}
	if w.within == maxDepth {
		return deeperMark, true
	}
	in := writer{detail: w.detail, most: w.most, within: w.within + 1}
	in.value(n, false)
	switch {
	case in.full:
		return fmt.Sprintf("[%d bytes]", len(s)), true
	case in.left || in.truncated:
		w.truncated = w.truncated || in.truncated
		return in.b.String(), true
	}
	return s, true
}

// array writes the elements. One that stands behind the name of a secret is its value,
// as in the arguments of a command, or in a header written as a pair.
func (w *writer) array(n *node) {
	w.raw("[")
	behind := false
	for i, kid := range n.kids[:min(len(n.kids), w.kids)] {
		if i > 0 {
			w.raw(",")
		}
		w.value(kid, behind)
		behind = kid.kind == textNode && mentionsSecret(kid.text)
	}
	if more := n.more + max(len(n.kids)-w.kids, 0); more > 0 {
		w.truncated = true
		if len(n.kids) > 0 {
			w.raw(",")
		}
		w.quoted(moreMark(n, more))
	}
	w.raw("]")
}

func moreMark(n *node, more int) string {
	if len(n.kids) == 0 {
		return deeperMark
	}
	return fmt.Sprintf("[%d more]", more)
}

// naming are keys whose value names what another key of the same object holds, as in
// {"name": "Authorization", "value": "…"}.
var naming = map[string]bool{
	"name": true, "key": true, "header": true, "field": true, "param": true, "parameter": true, "variable": true,
	"var": true, "env": true, "id": true, "label": true, "title": true, "k": true, "option": true, "flag": true,
}

func (w *writer) object(n *node) {
	named := false
	for i, kid := range n.kids {
		named = named || kid.kind == textNode && naming[letters(n.keys[i])] && mentionsSecret(kid.text)
	}
	w.raw("{")
	for i, kid := range n.kids[:min(len(n.kids), w.kids)] {
		if i > 0 {
			w.raw(",")
		}
		k, secret := w.key(n.keys[i], kid)
		w.quoted(k)
		w.raw(":")
		w.value(kid, secret || named)
	}
	if more := n.more + max(len(n.kids)-w.kids, 0); more > 0 {
		w.truncated = true
		if len(n.kids) > 0 {
			w.raw(",")
		}
		w.quoted(moreMark(n, more))
		w.raw(":null")
	}
	w.raw("}")
}

// identifier is a key that is a name; what is none may hold more than a name.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,39}$`)

// key is what is kept of a key, and whether what stands under it is a secret.
func (w *writer) key(k string, value *node) (kept string, secret bool) {
	l := letters(k)
	// A count of a model's tokens is no token.
	count := strings.HasSuffix(l, "tokens") && value.kind == numberNode && len(value.text) <= 12
	secret = (mentionsSecret(k) || secretNames[l]) && !count
	kept = k
	switch {
	case len(k) > 64:
		kept, w.truncated = fmt.Sprintf("[%d bytes]", len(k)), true
	case keyLike(k) || mentionsSecret(k) && !identifier.MatchString(k):
		kept = redactedMark
	case !mentionsSecret(k):
		kept = scrub(k)
	}
	w.left = w.left || kept != k
	return kept, secret
}

// secretWords are what names of secrets have in them, in small letters and without what
// is between words. A text that has one in it is left out whole: the secret may stand
// before the word as well as behind it.
var secretWords = []string{
	"password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "pwd", "secret", "token", "credential",
	"authorization", "authentication", "apikey", "accesskey", "privatekey", "signingkey", "encryptionkey", "masterkey",
	"accountkey", "sharedkey", "cookie", "bearer", "jwt", "sessionid", "sessionkey", "mnemonic", "seedphrase", "pincode",
}

// secretNames are names of secrets that are parts of harmless words too.
var secretNames = map[string]bool{
	"pass": true, "pw": true, "pin": true, "otp": true, "totp": true, "cvv": true, "cvc": true, "auth": true,
	"oauth": true, "sid": true, "sig": true, "signature": true, "session": true, "psk": true, "salt": true,
	"xauth": true, "proxyauth": true, "basicauth": true, "ssn": true,
}

// mentionsSecret reports whether one of secretWords is in s, however it is spelt.
func mentionsSecret(s string) bool {
	l := letters(s)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(l, w) })
}

// letters are the letters and digits of s, small, with letters of other widths and
// styles as plain ones.
func letters(s string) string {
	plain := true
	for i := range len(s) {
		plain = plain && s[i] < utf8.RuneSelf
	}
	if !plain {
		s = norm.NFKD.String(s)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// Secrets in free text, by what stands around them.
var (
	userInfo = regexp.MustCompile(`://\S*@`)
	userPass = regexp.MustCompile(`[^\s:]+:[^\s]+@`)
	query    = regexp.MustCompile(`([?&;#][^\s=&;#]{0,64}=)[^\s&#]*`)
	scheme   = regexp.MustCompile(`(?i)\b(basic|digest|negotiate|ntlm|apikey)[\s:]+\S+`)
	assigned = regexp.MustCompile(`(?i)\b(pass|pw|pin|otp|totp|cvv|cvc|auth|oauth|key|sid|sig|signature|session|psk|salt|ssn)["'\]\\]*\s*(?:=>?|:)\s*("[^"]*"|'[^']*'|\S+)`)
	word     = regexp.MustCompile(`[A-Za-z0-9_+/=.~%$-]{8,}`)
)

// scrub is s without what looks like a secret.
func scrub(s string) string {
	// A text with escapes in it can say everything in letters that are not searched for.
	if mentionsSecret(s) || strings.Contains(s, "-----BEGIN") || strings.Contains(s, `\u`) {
		return redactedMark
	}
	s = userInfo.ReplaceAllString(s, "://"+redactedMark+"@")
	s = userPass.ReplaceAllString(s, redactedMark+"@")
	s = query.ReplaceAllString(s, "${1}"+redactedMark)
	s = scheme.ReplaceAllString(s, "${1} "+redactedMark)
	s = assigned.ReplaceAllString(s, "${1}="+redactedMark)
	return word.ReplaceAllStringFunc(s, func(w string) string {
		if keyLike(w) {
			return redactedMark
		}
		return w
	})
}

// keyPrefixes begin keys of well-known services, and JWTs.
var keyPrefixes = []string{
	"eyJ", "osk_", "sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox",
	"xapp-", "AKIA", "ASIA", "AIza", "ya29.", "npm_", "pypi-", "hf_", "SG.", "dop_v1_", "shpat_", "whsec_", "AGE-", "$2",
}

// keyLike reports whether a word looks like a key: it begins like one, or is longer than
// people make words, with letters and digits in it.
func keyLike(word string) bool {
	if len(word) >= 8 {
		for _, p := range keyPrefixes {
			if strings.HasPrefix(word, p) {
				return true
			}
		}
	}
	if len(word) < 16 || strings.ContainsAny(word, " \t\n") {
		return false
	}
	hasLetter := strings.ContainsFunc(word, unicode.IsLetter)
	hasDigit := strings.ContainsFunc(word, unicode.IsDigit)
	switch {
	case len(word) >= 32:
		return true
	case len(word) >= 20:
		return hasLetter && hasDigit
	}
	// Of 16 to 19: only what is not made of words with something between them.
	return hasLetter && hasDigit && !strings.ContainsAny(word, "_+/=.~%$-")
}
