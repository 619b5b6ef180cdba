// Package workers runs skills in processes of their own, so that what escapes a
// sandbox has escaped into a process that may do nothing.
//
// A worker is this program again, started with no environment and no descriptors
// but its channel, held by Landlock, a system call filter and limits before it
// reads the first byte of a call. The host starts workers for an isolation key (a
// tenant, by default), hands them calls, and kills the one that does not end a
// call in time or grows too large. What a worker says is data from a process that
// may be anybody's: it is bounded and checked, and never decides more than the
// result of its own calls.
//
// Nothing is compiled in a worker, nor in the host. A module that a worker has not
// got is compiled by a process that ends with it, under limits of time and memory,
// and everybody who waits for the same module waits for the same process
// ([Modules]). What that process made is kept under the digest of the module, and
// each worker sees what it was given of it, by links in a folder of its own: code
// that a hostile module made out of the compiler reaches only those who run that
// module.
//
// # Connections
//
// A worker begins with two sockets. By the first one the host tells it what is no
// call: whose it is, and which calls nobody waits for any more. By the second one it
// is handed lanes, which are sockets of which each serves one call at a time: who
// makes a call writes it to a lane and reads the reply from it, and the worker's
// goroutine that reads the call also runs it. So nobody is woken on the way but the
// two processes, and that is most of what the way costs.
//
// A frame is its length in four bytes (of what follows), the kind in one, the number
// of the call in eight, the length of the head in four, all little-endian, then the
// head and the body. Heads of calls and replies are binary (codec.go), others JSON.
// The first frame of a worker is its hello, with the version of this protocol; host
// and worker are the same program, so another version is an error and not a case to
// be handled.
package workers
