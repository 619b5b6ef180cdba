// Package approval keeps what a person has allowed the scripts of Agent Skills to do:
// which of them asked, who decided, and what for.
//
// The door asks [Store.Check] before a script runs. By the policy version an approval
// holds for one skill of one tenant as its digest pins it: a skill that has changed asks
// again, and the record shows the digest that was approved before beside the one that
// asks. By the policy call an approval holds for one run of one script with these
// arguments and this standard input, by this caller, and is used up by it.
//
// # Who may decide
//
// Whoever has the scope skills:admin, and nobody else: not the owner of the skill, not
// the caller. Even with that scope, who asked does not decide about its own ask, unless
// it is the operator on the host's own machine. An approval cannot be had by a call:
// nothing that a caller sends to run a script reaches [Store.Decide].
//
// # States
//
// An ask is pending until it is approved or denied, or expires. What is approved can
// still be denied, which withdraws it; what is denied stays denied, and its caller is
// told so until it expires; after that the same call asks anew. The same ask twice is
// one ask. A tenant has a bounded number of pending ones: when there are more, the
// oldest of the same caller expires, so that nobody can push out what others ask.
//
// # On record
//
// Every change is one line of JSON in an append-only file, and is on the disk before
// anybody is answered. Several processes may have the file open: changes are made under
// a lock, and each process reads on when the file has grown. A line that a crash tore
// is skipped and logged. When the file is large it is begun anew with what still holds,
// and the one before is kept beside it.
package approval
