// Package preflight says, before anything runs, what the scripts of an Agent Skill
// need and whether the sandbox has it.
//
// It reads the folder and runs nothing of it. Imports are resolved as the interpreter
// would: against the folder's own modules, then against the runtimes; calls are told
// by the names that they were imported as. What is decided at run time (a module
// imported by a computed name, a path from an argument) is not seen, so a script that
// "runs" here can still differ: package parity compares real runs.
package preflight
