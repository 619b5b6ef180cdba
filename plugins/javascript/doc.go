// Package javascript runs JavaScript files as they are, in the sandbox: by
// QuickJS-ng 0.11, a WASI command of 1.4 MB that is part of the host, so that
// nothing is fetched. It is the runner wasm:javascript.
//
// # What a script sees
//
//	qjs --std --include /lib/prelude.js /skill/ENTRY ARGUMENTS…
//
// in the working directory "/", with the files that package sandbox shows, and no
// environment. The language is ES2023 and some more. Files are modules or classic
// scripts: *.mjs is a module, and any other file is one if it can be parsed as such,
// which is tried first and costs the time of parsing once more. Modules are found
// by paths relative to the one that imports them.
//
// The globals std and os are QuickJS's own modules (os with reading functions of the
// prelude, until the first read), which can be imported as
// qjs:std and qjs:os, and by the names that other versions of QuickJS have for
// them, std and os. /lib/prelude.js loads the compiled files of folder prelude: console
// as Node has it, timers, and the methods that format and compare for a language. There
// is no fetch, require, process, TextEncoder or Intl, and there are no threads,
// processes or sockets.
//
// A script is started once, up to its first read of standard input, and every call
// goes on from there. Math.random is seeded anew at that read, by std.in, a file of
// descriptor 0, or os.read and read handlers of the global os and of module os. Not by
// those of qjs:os, which nothing can stand before: its os.read(0, …) leaves the seed of
// the start-up.
//
// A script of an Agent Skill (a call's Script) has the skill's folder at /skills/NAME,
// which is its working folder and may be written to, PWD, HOME and TMPDIR. It runs with
// Node's modules, of prelude/node, where they are installed: they are loaded once for all
// runs of a skill's scripts, up to the first read of standard input, which gives the
// script and its arguments. Else each run has an interpreter of its own.
//
// Those scripts start programs by child_process, and Node is a program that others start: a
// process that asks for its arguments, in prelude/node/cli.mjs.
//
// # How it ends
//
// An exception or a rejected promise that nobody catches ends a script with exit
// code 1, its file, line and stack trace on standard error. Recursion without an end is a
// RangeError, after some 850 calls of a plain function, 250 through an array's map.
// A promise that is never settled is waited for until fuel or time are used up.
//
// # What it costs
//
// Each run starts an interpreter: 1 ms and 11 million units of fuel, of which the prelude
// is a third. Parsing takes
// 2,000 to 3,000 units a byte of dense code, reading standard input 270. A fresh
// compilation of the runtime takes 1 to 2 s; [Runner.Warm] does it ahead.
package javascript
