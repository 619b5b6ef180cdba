package main

import (
	"fmt"
	"strconv"
	"time"
)

// word is a flag's text; name is what --help calls it.
type word struct {
	to   *string
	name string
}

// String implements pflag.Value.
func (w *word) String() string {
	if w.to == nil {
		return ""
	}
	return *w.to
}

// Set implements pflag.Value.
func (w *word) Set(s string) error { *w.to = s; return nil }

// Type implements pflag.Value.
func (w *word) Type() string { return w.name }

// words is a flag that may be given many times.
type words struct {
	to   *[]string
	name string
}

// String implements pflag.Value.
func (w *words) String() string { return "" }

// Set implements pflag.Value.
func (w *words) Set(s string) error { *w.to = append(*w.to, s); return nil }

// Type implements pflag.Value.
func (w *words) Type() string { return w.name }

// count is a flag's whole number within a range.
type count struct {
	value     uint64
	low, high uint64
	name      string // of the value, in --help
}

// String implements pflag.Value.
func (c *count) String() string {
	if c.value == 0 {
		return ""
	}
	return strconv.FormatUint(c.value, 10)
}

// Set implements pflag.Value.
func (c *count) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < c.low || n > c.high {
		return fmt.Errorf("want a whole number from %d to %d", c.low, c.high)
	}
	c.value = n
	return nil
}

// Type implements pflag.Value.
func (c *count) Type() string { return c.name }

// duration is a flag's time within the range of a run's timeout.
type duration struct{ value time.Duration }

// The range of durations that a command line may give.
const (
	shortest = time.Millisecond
	longest  = 24 * time.Hour
)

// String implements pflag.Value.
func (d *duration) String() string {
	if d.value == 0 {
		return ""
	}
	return d.value.String()
}

// Set implements pflag.Value.
func (d *duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil || v < shortest || v > longest {
		return fmt.Errorf("want a time with its unit, such as 500ms, 15s or 2m, from 1ms to 24h")
	}
	d.value = v
	return nil
}

// Type implements pflag.Value.
func (d *duration) Type() string { return "TIME" }
