// Command openskill runs the skills of AI agents in a sandbox.
//
// Results go to standard output; progress, logs and errors to standard error.
// The exit code is 0 for success, 1 if the skill or the check failed, 2 for wrong
// usage or settings, 3 if the host failed. There is one file for each subcommand.
package main
