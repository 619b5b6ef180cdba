// Package cliflag has the kinds of flags that the commands share, with the names of their values
// in help texts.
package cliflag

import (
	"fmt"
	"strconv"
	"time"
)

// Text returns a flag with a text; name is what help calls its value.
func Text(to *string, name string) *text { return &text{to, name} }

type text struct {
	to   *string
	name string
}

// String implements pflag.Value.
func (t *text) String() string {
	if t.to == nil {
		return ""
	}
	return *t.to
}

// Set implements pflag.Value.
func (t *text) Set(s string) error { *t.to = s; return nil }

// Type implements pflag.Value.
func (t *text) Type() string { return t.name }

// Texts returns a flag that may be given many times.
func Texts(to *[]string, name string) *texts { return &texts{to, name} }

type texts struct {
	to   *[]string
	name string
}

// String implements pflag.Value.
func (t *texts) String() string { return "" }

// Set implements pflag.Value.
func (t *texts) Set(s string) error { *t.to = append(*t.to, s); return nil }

// Type implements pflag.Value.
func (t *texts) Type() string { return t.name }

// Count is a flag's whole number within a range.
type Count struct {
	Value     uint64
	Low, High uint64
	Name      string // of the value, in help
}

// String implements pflag.Value.
func (c *Count) String() string {
	if c.Value == 0 {
		return ""
	}
	return strconv.FormatUint(c.Value, 10)
}

// Set implements pflag.Value.
func (c *Count) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < c.Low || n > c.High {
		return fmt.Errorf("want a whole number from %d to %d", c.Low, c.High)
	}
	c.Value = n
	return nil
}

// Type implements pflag.Value.
func (c *Count) Type() string { return c.Name }

// Duration is a flag's time within the range of a run's timeout.
type Duration struct{ Value time.Duration }

// The range of durations that a command line may give.
const (
	shortest = time.Millisecond
	longest  = 24 * time.Hour
)

// String implements pflag.Value.
func (d *Duration) String() string {
	if d.Value == 0 {
		return ""
	}
	return d.Value.String()
}

// Set implements pflag.Value.
func (d *Duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil || v < shortest || v > longest {
		return fmt.Errorf("want a time with its unit, such as 500ms, 15s or 2m, from 1ms to 24h")
	}
	d.Value = v
	return nil
}

// Type implements pflag.Value.
func (d *Duration) Type() string { return "TIME" }

// Each returns a flag that may be given many times, and that set reads each time.
func Each(name string, set func(string) error) *each { return &each{set, name} }

type each struct {
	set  func(string) error
	name string
}

// String implements pflag.Value.
func (e *each) String() string { return "" }

// Set implements pflag.Value.
func (e *each) Set(s string) error { return e.set(s) }

// Type implements pflag.Value.
func (e *each) Type() string { return e.name }
