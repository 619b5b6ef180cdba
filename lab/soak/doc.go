// Package soak calls a host for a long time with many kinds of calls, looks at what its
// processes hold meanwhile, and says by a rule whether that is flat or growing.
//
// The rule is in [Judge], what is sent in [Mix], what is looked at in [Sample].
package soak
