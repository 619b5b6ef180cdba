// Package cli runs skills as Python scripts, or as executable files, in a subprocess, for
// skills whose author the operator trusts (kinds cli:python and cli:exec).
//
// It is the way out where a WebAssembly runtime cannot be had, not a sandbox
// for strangers: a script runs on the host's kernel with the host's
// interpreter. Therefore a Community call is refused here too, whatever the
// door did. What a mistake of a trusted author can do is still held small:
//
//   - The script sees the variables that it was granted, an empty folder as its working directory,
//     ./data when that is granted, ./work when scratch is granted, and no open
//     descriptor but its three streams.
//   - It is gone when Run returns, with everything it started: on Linux in a
//     PID namespace of its own, which the kernel empties, else under a
//     subreaper whose descendants are killed until none is left.
//   - Time, memory, output, files and processes are limited.
//
// Not all kernels and containers allow all of it. [Runner.Protections] says
// what holds on this machine, for the operator.
//
// # The supervisor
//
// The interpreter begins with boot.py, which is part of this package. It forks:
// the child sets its resource limits, which cannot be raised again, and becomes
// the script; the parent waits, takes in orphans and tells the host over a
// private pipe how the script ended. Limits are set before the first line of
// the script runs, which prlimit from outside could not promise. The script is
// not the init process of its namespace, for which signals work differently.
// And the kernel's count of peak memory is the script's own: the count of a
// process that the host started would begin with the host's.
//
// # What a script may import
//
// The interpreter runs isolated (-I): no PYTHON variables, no packages of the
// user, no current directory on the path. The folder of the script itself is
// put first on sys.path, as python script.py does, because skills split their
// scripts into modules.
//
// # Executable files
//
// A runner of cli:exec (see [Runner.Programs]) has the same supervisor, which executes the
// entry in the place of a script: a program, or a script that names its interpreter in
// its first line. What it may write to is limited (RLIMIT_DATA), because the runtimes of
// compiled languages reserve far more address space than they use; what it shares with
// processes of its own is not counted there, and bounded by its address space, which may
// have twice the limit and 4 GiB. A Go program asks for 64 MiB at once, and fails by itself
// where it does not get them. An entry that cannot be executed is exit code 126.
//
// # What is not prevented
//
// The memory limit is one of address space for each process, not for all
// together. Sockets of the local machine that are files can be connected to
// where their permissions allow it. Many files below ./work may exceed the
// scratch limit by what is written in 10 milliseconds, then the run is ended; a
// single file may not. A script may be refused memory for a single large request
// without the host noticing: that is its own failure then, not MEMORY_LIMIT.
// Without namespaces the network can be reached, and without Landlock every file
// that the host's user can read; [Runner.Protections] tells both.
package cli
