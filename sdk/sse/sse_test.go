package sse

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

type event struct{ Name, Data string }

// readAll reads a stream to its end, which must be that of the input.
func readAll(t *testing.T, r io.Reader, most int) (out []event, err error) {
	t.Helper()
	events := NewReader(r, most)
	for {
		e, err := events.Next()
		if err != nil {
			return out, err
		}
		out = append(out, event{e.Name, string(e.Data)})
	}
}

// Events are read as the HTML standard says; the last cases are its own examples.
func TestEvents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []event
	}{
		{"nothing", "", nil},
		{"one", "event: text\ndata: {}\n\n", []event{{"text", "{}"}}},
		{"CR LF", "event: text\r\ndata: {}\r\n\r\n", []event{{"text", "{}"}}},
		{"CR", "event: text\rdata: {}\r\r", []event{{"text", "{}"}}},
		{"all of them", "event: text\rdata: 1\r\ndata: 2\n\r\ndata: 3\r\n\n", []event{{"text", "1\n2"}, {"message", "3"}}},
		{"byte order mark", "\ufeffdata: 1\n\n", []event{{"message", "1"}}},
		{"byte order mark later", "data: 1\n\n\ufeffdata: 2\n\n", []event{{"message", "1"}}},
		{"comments", ": hello\n:\n\n:::\ndata: 1\n: in between\n\n", []event{{"message", "1"}}},
		{"id and retry", "id: 7\nretry: 10\nid: \x00\ndata: 1\n\n", []event{{"message", "1"}}},
		{"unknown fields", "foo: bar\nfoo\ndata: 1\n DATA: 2\nData: 3\n\n", []event{{"message", "1"}}},
		{"the last name counts", "event: a\nevent: b\ndata: 1\n\n", []event{{"b", "1"}}},
		{"a name is of one event", "event: a\n\ndata: 1\n\n", []event{{"message", "1"}}},
		{"colons", "data: a: b\n\n", []event{{"message", "a: b"}}},
		{"one space", "data:  a\n\n", []event{{"message", " a"}}},
		{"no space", "data:a\n\n", []event{{"message", "a"}}},
		{"cut off in a line", "data: 1\n\ndata: 2", []event{{"message", "1"}}},
		{"cut off behind a line", "data: 1\n\ndata: 2\n", []event{{"message", "1"}}},
		{"three lines", "data: YHOO\ndata: +2\ndata: 10\n\n", []event{{"message", "YHOO\n+2\n10"}}},
		{"empty data", "data\n\n" + strings.Repeat("data\n", 2) + "\ndata:", []event{{"message", ""}, {"message", "\n"}}},
		{"identical", "data:test\n\ndata: test\n\n", []event{{"message", "test"}, {"message", "test"}}},
	} {
		for how, in := range map[string]io.Reader{"whole": strings.NewReader(tt.in), "by bytes": iotest.OneByteReader(strings.NewReader(tt.in))} {
			got, err := readAll(t, in, 1<<10)
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s, %s: ended with %v", tt.name, how, err)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s, %s: %q, want %q", tt.name, how, got, tt.want)
			}
		}
	}
}

// An event that ends with CR is there before anything follows it.
func TestEventsDoNotWaitBehindCR(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	go w.Write([]byte("data: 1\r\r"))
	e, err := NewReader(r, 100).Next() // it would wait for good
	if err != nil || string(e.Data) != "1" {
		t.Fatal(e, err)
	}
}

// endless repeats a text for good.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}

// Events have a longest length, whatever they are made of; many short ones have none.
func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 1 << 10
	for _, text := range []string{"x", "data: 1\n", "event: 1\n", ":", "data", "foo: bar\n"} {
		got, err := readAll(t, &endless{text: text}, most)
		if err == nil || !strings.Contains(err.Error(), "longer than 1024 bytes") || len(got) > 0 {
			t.Errorf("%q without an end: %v, %v", text, got, err)
		}
	}
	got, err := readAll(t, strings.NewReader(strings.Repeat(": still here\n\n", most)+strings.Repeat("data: 1\n\n", most)), most)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != most {
		t.Errorf("%d events, %v; want %d", len(got), err, most)
	}
}

// byTheBook reads a whole stream in the plainest way.
func byTheBook(s string) (out []event) {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(s, "\n")
	name, data := "", []string(nil)
	for _, l := range lines[:len(lines)-1] {
		field, value, _ := strings.Cut(l, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case l == "":
			if data != nil {
				if name == "" {
					name = "message"
				}
				out = append(out, event{name, strings.Join(data, "\n")})
			}
			name, data = "", nil
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		}
	}
	return out
}

func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: 1\n\n", "\ufeffevent: a\r\ndata\r\r", ":\rdata:\n\r\n", "data: \x00\xff\n\n\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		want := byTheBook(in)
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in)), iotest.DataErrReader(strings.NewReader(in))} {
			got, err := readAll(t, r, len(in)+1)
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%q ended with %v", in, err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%q: %q, want %q", in, got, want)
			}
		}
	})
}
