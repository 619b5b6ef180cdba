package pysource

import "encoding/json"

// Module is what a program is made of. Names are resolved by its imports: after
// "import typing as t", what is written t.Optional is typing.Optional here. At most 5,000
// entries of each list are told.
type Module struct {
	Problem *Problem `json:"error"` // nil: it is Python, and the rest holds
	Imports []Import `json:"imports"`
	Uses    []Use    `json:"uses"` // of what is imported, and of some built-in functions
	Main    bool     `json:"main"` // it has an if __name__ == "__main__"
	Cut     bool     `json:"cut"`  // a list was longer than is told

	Programs  []Program  `json:"programs"`  // that it starts or looks for
	Variables []Variable `json:"variables"` // of the environment that it reads
	Addresses []Address  `json:"addresses"` // texts that begin with http:// or https://, except in messages and docstrings
	Methods   []string   `json:"methods"`   // of HTTP that it names or calls, beside GET

	// Answers to a [Question]. Package capability knows their forms.
	Function json.RawMessage `json:"function"`
	Script   json.RawMessage `json:"script"`
	Problems []Problem       `json:"problems"` // what keeps the function from being a tool
}

// Problem is why a program cannot be read, or a function be no tool.
type Problem struct {
	Kind    string `json:"kind"` // syntax, encoding or complex; "" of a function
	Line    int    `json:"line"` // from 1; 0: the whole
	Column  int    `json:"column"`
	Message string `json:"message"` // the parser's own, not cleaned
}

// Import is one import statement's module.
type Import struct {
	Module       string       `json:"module"` // a.b.c; "" in from . import x
	As           string       `json:"as"`
	Names        []ImportName `json:"names"` // from Module import these; nil for import Module
	Level        int          `json:"level"` // dots before it
	Line         int          `json:"line"`
	Optional     bool         `json:"optional"`      // it may fail: within try … except ImportError
	Function     bool         `json:"function"`      // within a function: it may never be reached
	TypeChecking bool         `json:"type_checking"` // for type checkers alone
}

// ImportName is a name that from … import takes; * for all.
type ImportName struct {
	Name string `json:"name"`
	As   string `json:"as"`
}

// Use is a use of something imported, as sys.stdin or subprocess.run(…), or a call of
// open, input, exec, eval, compile, breakpoint, exit, quit or __import__.
type Use struct {
	Name     string            `json:"name"` // resolved: subprocess.run, sys.stdin.read, open
	Line     int               `json:"line"`
	Call     bool              `json:"call"`
	Function string            `json:"function"` // path of the function that it stands in; ""
	Args     []string          `json:"args"`     // of a call, the first four; "" for what is no literal text
	Keywords map[string]string `json:"keywords"` // and the first eight
}

// Unknown stands for what is computed, in the texts of a [Program] and an [Address].
const Unknown = "\ufffc"

// Program is a call that starts another program, or looks for one.
type Program struct {
	By    string   `json:"by"` // what starts it: subprocess.run
	Line  int      `json:"line"`
	Words []string `json:"words"` // the command, the first 16; none where it is computed
	Shell bool     `json:"shell"` // the only word is a text for the shell
	Look  bool     `json:"look"`  // it is looked for, and not started
}

// Variable is a variable of the environment that a program reads.
type Variable struct {
	Name string `json:"name"`
	Line int    `json:"line"`
}

// Address is a text that is an address.
type Address struct {
	Text string `json:"text"`
	Line int    `json:"line"`
}
