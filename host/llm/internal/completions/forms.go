package completions

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// answer is a whole answer, or one chunk of a stream: of OpenAI's form the members that
// are read here. What has another type than it should is as if it were not there.
type answer struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index   int     `json:"index"`
	Message message `json:"message"`
	Delta   message `json:"delta"`
	Finish  Word    `json:"finish_reason"`
}

type message struct {
	Content content `json:"content"`
	Refusal content `json:"refusal"`
	Calls   []call  `json:"tool_calls"`
}

type call struct {
	Index    *int `json:"index"`
	ID       Word `json:"id"`
	Function struct {
		Name      Word `json:"name"`
		Arguments Word `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	Prompt     Tokens `json:"prompt_tokens"`
	Completion Tokens `json:"completion_tokens"`
	Total      Tokens `json:"total_tokens"`
}

// Decode reads JSON of an object, and leaves out what has the wrong type.
func Decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) && mistyped.Field != "" {
		return nil
	}
	return err
}

// Word is a string; null is none, and anything else is its JSON. So arguments that come as
// an object are kept.
type Word string

// UnmarshalJSON implements json.Unmarshaler.
func (w *Word) UnmarshalJSON(raw []byte) error {
	var text string
	switch {
	case bytes.Equal(raw, []byte("null")):
	case raw[0] == '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	default:
		text = string(raw)
	}
	*w = Word(text)
	return nil
}

// content is text, or the text of a list of parts. Parts of other kinds, such as what a
// model thinks, are not part of what it says.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		var text Word
		err := text.UnmarshalJSON(raw)
		*c = content(text)
		return err
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = Decode(raw, &parts) // it is JSON; what is no part is left out
	var text strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			text.WriteString(p.Text)
		}
	}
	*c = content(text.String())
	return nil
}

// Tokens is a count, which may be written as a string or with a point. A count that no
// model can reach is cut, for the sake of what is computed of it.
type Tokens int

const mostTokens = 1e9

// UnmarshalJSON implements json.Unmarshaler.
func (t *Tokens) UnmarshalJSON(raw []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil && !math.IsInf(n, 0) || math.IsNaN(n) {
		n = 0
	}
	*t = Tokens(min(max(n, 0), mostTokens))
	return nil
}
