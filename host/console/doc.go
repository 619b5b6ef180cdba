// Package console is the web console: pages by which people see and steer a host, rendered
// here, that work without scripts and better with them.
//
// It can do nothing that the HTTP API cannot. What the API has it asks for by Options.API,
// as the caller who signed in, and so by the same routes, table of access and limits. What
// the API has not (figures, a live tail, keys, settings, the state of the chain) comes by
// the small interfaces of Options, and the pages of it look for the scope that [needs] says.
//
// Everything that comes from skills, models and callers is hostile text. templ escapes it;
// before, [visible] makes what cannot be seen visible. No page has a script or a style in
// it, and nothing is fetched from elsewhere: the Content-Security-Policy holds both.
package console

//go:generate env GOWORK=off go tool -modfile=../../tools/go.mod templ generate
