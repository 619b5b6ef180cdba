// Package wasi is WASI preview1 as a world that one run sees: arguments,
// streams, files, clocks and chance, all of them in one [World], and nothing of
// the host beside it.
//
// The functions are a wazero host module that keeps no state of its own
// ([Instantiate] once a runtime). A call finds its World through the context
// ([WithWorld]), so one runtime serves many runs.
//
// Beside preview1 there is one thing more to call, for what it has no word for:
// requests to the network ([OutgoingModule], and files of guestfs.Exchange for
// programs that cannot import functions). Both end in Config.Fetch. And plug-ins of
// Extism find the functions that they import ([PluginModule]), in the same World.
//
// # How a run ends
//
// The host decides why a run ended, and keeps the answer in the World:
// [World.Stopped]. A function that ends the run records a [Stop] there and
// panics with it; wazero unwinds the guest and returns an error in which
// errors.As finds the *Stop. Neither message nor exit code of a guest can make up
// one. The context is looked at on every call, between chunks of a long copy, and
// in every wait, so a deadline always wins against a sleep or a silent reader.
//
// # What is not computed
//
// All that a guest is told and could not compute goes through four functions: the time of
// day (files that it writes are dated by it, too), the time that has passed, chance, and
// the network. Config.Record has them written to a tape of package wasm/tape, Config.Replay
// takes them from one: then they look at nothing else, and a wait is over at once. What is
// left are the files below Root, and a Stdin that comes in pieces: who replays a run sees
// to these.
//
// # What is bounded
//
//   - vectors of one call: 1,024 (EINVAL beyond), and 16 MiB of data (a short
//     count beyond);
//   - subscriptions of one poll: 1,024 (EINVAL beyond);
//   - descriptors: Config.MaxOpenFiles (EMFILE beyond);
//   - output: Config.StdoutLimit and StderrLimit, which end the run;
//   - a request to the network: 4 MiB (EFBIG beyond); one request and one response
//     are kept;
//   - blocks of plug-ins: Config.Hold; their variables: 1 MiB;
//   - paths: the caps of package guestfs;
//   - work that grows with an argument is charged before or right after each
//     chunk of 64 KiB, through Config.Charge.
//
// # What differs from other hosts
//
//   - There is one preopen, "/", descriptor 3.
//   - Rights are advisory, as they became everywhere: a descriptor can read or
//     write as path_open asked, and fd_fdstat_set_rights is ENOSYS.
//   - Process and thread CPU time are the monotonic clock.
//   - A guest's monotonic clock starts at one second, since Go takes zero for a
//     broken clock.
//   - fd_prestat_dir_name takes a buffer that is larger than the name and refuses a
//     smaller one (wazero has it the other way round).
//   - Links that a guest makes lead through the mount that they are in, and are EPERM
//     where they lead out of it or out of the folder whose descriptor is used. What
//     stands before "..", unless it is a link, need not be there.
//   - There are no sockets: every sock_ call on an open descriptor is ENOTSOCK.
//   - proc_raise is ENOSYS: there are no signals.
//
// testdata/readonly.md lists what a read-only world refuses, and
// testdata/testsuite.md what of the official test suite does not pass.
package wasi
