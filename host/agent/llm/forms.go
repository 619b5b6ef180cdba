package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// completion is a whole answer, or one chunk of a stream: of OpenAI's form the members that
// are read here. What has another type than it should is as if it were not there.
type completion struct {
	Choices []completionChoice `json:"choices"`
	Usage   *completionUsage   `json:"usage"`
	Error   json.RawMessage    `json:"error"`
}

type completionChoice struct {
	Index   int               `json:"index"`
	Message completionMessage `json:"message"`
	Delta   completionMessage `json:"delta"`
	Finish  word              `json:"finish_reason"`
}

type completionMessage struct {
	Content content          `json:"content"`
	Refusal content          `json:"refusal"`
	Calls   []completionCall `json:"tool_calls"`
}

type completionCall struct {
	Index    *int `json:"index"`
	ID       word `json:"id"`
	Function struct {
		Name      word `json:"name"`
		Arguments word `json:"arguments"`
	} `json:"function"`
}

type completionUsage struct {
	Prompt     tokenCount `json:"prompt_tokens"`
	Completion tokenCount `json:"completion_tokens"`
	Total      tokenCount `json:"total_tokens"`
}

// decode reads JSON of an object, and leaves out what has the wrong type.
func decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mistyped.Field != "" {
		return nil
	}
	return err
}

// word is a string; null is none, and anything else is its JSON. So arguments that come as
// an object are kept.
type word string

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(raw []byte) error {
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
	*w = word(text)
	return nil
}

// content is text, or the text of a list of parts. Parts of other kinds, such as what a
// model thinks, are not part of what it says.
type content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		var text word
		err := text.UnmarshalJSON(raw)
		*c = content(text)
		return err
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = decode(raw, &parts) // it is JSON; what is no part is left out
	var text strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			text.WriteString(p.Text)
		}
	}
	*c = content(text.String())
	return nil
}

// tokenCount is a count, which may be written as a string or with a point. A count that no
// model can reach is cut, for the sake of what is computed of it.
type tokenCount int

const mostTokens = 1e9

// UnmarshalJSON implements json.Unmarshaler.
func (t *tokenCount) UnmarshalJSON(raw []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil && !math.IsInf(n, 0) || math.IsNaN(n) {
		n = 0
	}
	*t = tokenCount(min(max(n, 0), mostTokens))
	return nil
}
