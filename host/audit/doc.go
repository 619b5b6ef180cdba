// Package audit keeps the record of every run: what was asked by whom before anything
// runs, how it ended before the caller is answered, each record chained to the one
// before it, so that a change afterwards is found.
package audit
