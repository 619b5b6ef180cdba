// Package app is the assembly: it builds an engine, runners, a catalogue, the
// door and the HTTP edge out of settings, and hands them to each other.
//
// Everything that can execute code on this host is listed by plugins/all, one
// function to read. Nothing here decides anything about a call: that is the
// door's, host/dispatch.
package app

// Version is the release.
const Version = "0.1.0"
