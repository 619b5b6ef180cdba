package main

import (
	"strings"
	"testing"
)

func TestEntriesEnd(t *testing.T) {
	for language, entries := range map[string]map[string]bool{
		"python": {
			"x = 1": true, "": true, "x = [1,": false, "x = [1,|2]": true, "def f():": false, "def f():|  return 1": false, "def f():|  return 1|": true,
			"@cache": false, "if x: y()": true, "for x in y:  ": false, "'''a": false, "'''a|b'''": true, "x = '('": true, "x = 'it\\'s ('": true, "# (": true,
			"x = 1 \\": false, "x = \"a": true, "d = {'a': 1,|'b':": false, "f(1, # )|": false, `"""a \""" b`: false, "try:|  x|except:|  y": false, ")": true,
		},
		"javascript": {"const x = {": false, "const x = {|}": true, "`a": false, "`a|b`": true, "f('(')": true, "// {": true, "switch (x) {|case 1:": false},
		"shell":      {"echo (": true, "echo a \\": false, "echo a \\|b": true, "for x in a:": true},
	} {
		for text, want := range entries {
			if got := ended(language, strings.Split(text, "|")); got != want {
				t.Errorf("%s: %q ends: %v", language, text, got)
			}
		}
	}
}
