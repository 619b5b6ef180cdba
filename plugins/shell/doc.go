// Package shell runs shell scripts as they are, in the sandbox: by bashkit 0.20 on WASI, which
// scripts/shell.sh builds of folder module. It is the runner wasm:shell.
//
// # What a script sees
//
// A bash 5.2 whose commands, coreutils, grep, sed, awk, find, xargs, diff, tar, gzip, jq, bc,
// date, curl, wget and more, are part of the module, and pipes connect them inside it. Programs of
// other runtimes, such as python3 and node, are processes of the run (module/src/programs.rs).
// Anything else is "command not found", 127. docs/author-shell.md lists the commands.
//
// Files are those that package sandbox shows. A skill's entry starts in "/"; a script of an
// Agent Skill starts in its folder, with HOME and TMPDIR. Permission bits are kept for the run:
// files are 0644, those that begin with #! and the entry 0755.
//
// # How it starts
//
// The module starts once, up to its first read of standard input: no line of a script has run,
// so that one image serves all scripts of a folder. The runner writes the script's path and
// arguments there (see arguments), and what the script itself reads follows.
//
// # How it ends
//
// With the script's exit code. The shell's own bounds on commands, loops and output are lifted,
// as the sandbox's hold. Functions nest 210 deep; one more ends the script with an error.
package shell
