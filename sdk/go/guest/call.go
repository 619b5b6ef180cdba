package guest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Call is one call of the skill. It is the call's alone and good until the skill's
// function returns; its methods may be used by several goroutines, but for one
// artifact's name at a time.
type Call struct {
	SkillID string
	TraceID string

	root string // before data and work; "" where there are no files

	mu   sync.Mutex // held while logs are written
	logs io.Writer
}

// Debug writes a line to standard error, which operators may read: the level, the
// message, and what args are as JSON, keys and values by turns. Info, Warn and Error do
// the same.
func (c *Call) Debug(message string, args ...any) { c.log("DEBUG", message, args) }

// Info is described at Debug.
func (c *Call) Info(message string, args ...any) { c.log("INFO", message, args) }

// Warn is described at Debug.
func (c *Call) Warn(message string, args ...any) { c.log("WARN", message, args) }

// Error is described at Debug. It ends nothing.
func (c *Call) Error(message string, args ...any) { c.log("ERROR", message, args) }

func (c *Call) log(level, message string, args []any) {
	line := level + " " + oneLine(message)
	var fields []string
	for len(args) > 0 {
		key, value := any("!key"), args[0]
		if _, ok := args[0].(string); ok && len(args) > 1 {
			key, value = args[0], args[1]
			args = args[1:]
		}
		args = args[1:]
		fields = append(fields, word(key)+":"+word(value))
	}
	if fields != nil {
		line += " {" + strings.Join(fields, ",") + "}"
	}
	c.write(line + "\n")
}

// write writes a log. One that is gone ends no call.
func (c *Call) write(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.logs, text)
}

// word is a value as JSON in one line, or its text where it has none.
func word(v any) string {
	if err, ok := v.(error); ok {
		v = err.Error()
	}
	b, err := encode(v)
	if err != nil {
		b, err = json.Marshal(fmt.Sprint(v))
	}
	if err != nil {
		return `"?"`
	}
	return oneLine(strings.TrimSuffix(string(b), "\n"))
}
