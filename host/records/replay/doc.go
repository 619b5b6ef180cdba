// Package replay makes a run again and says whether it ended the same, or where not.
//
// What a run was given is kept when it ends: its input, its limits, the names of what it
// was granted, what it looked at in the folder of data (digests, not the files), and its
// draws: clocks, chance and answers of the network, see package wasm/tape. A replay gives
// the run all of that again. It looks at no clock and never reaches the network, so on
// another day and in another process the guest computes what it computed then.
//
// Two runs are identical where status, code, message, data (as canonical JSON), the
// digests of artifacts and the fuel agree. What a replay needs and cannot be given
// (another version of the skill, a file that has changed, a lower limit, another runner,
// a variable with another value) is said before anything runs, and then nothing runs.
//
// A recording has the input and the result whole, whatever the audit policy keeps of
// them, and what the network answered; who may see the execution may replay it, and only
// what differs is shown. It never has the value of a variable, but a keyed hash of it.
package replay
