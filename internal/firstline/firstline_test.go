package firstline

import (
	"strings"
	"testing"
)

func TestEnding(t *testing.T) {
	for head, want := range map[string]string{
		"#!/bin/sh\necho":                        ".sh",
		"#! /usr/bin/env bash\n":                 ".sh",
		"#!/usr/bin/env -S python3.12 -u\nx":     ".py",
		"#!/usr/bin/node":                        ".js",
		"#!/usr/bin/env\n":                       "",
		"#!\n":                                   "",
		"":                                       "",
		"\x7fELF":                                "",
		"#!/usr/bin/awk -f\n":                    "",
		"# no script\n":                          "",
		"#!" + strings.Repeat("x", 300) + "/sh":  "",
		"#!/bin/sh\r\n":                          ".sh",
		"#!/usr/bin/env bash\x00" + "\xff\xfe\n": "",
	} {
		if got := Ending(Program([]byte(head))); got != want {
			t.Errorf("%q: %q, want %q", head, got, want)
		}
	}
}
