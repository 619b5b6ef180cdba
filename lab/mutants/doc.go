// Command mutants removes each defence of docs/threats.md in turn, and fails if the tests of
// its threat pass all the same.
//
//	go -C lab run ./mutants            all of them, some hours of processor time
//	go -C lab run ./mutants T017 T018  those of these threats
//
// A mutant is a change to one file that removes one defence. The folder threats has them:
//
//	== T017 host/api/body.go
//	<<<
//		if n > limit {
//	===
//		if false {
//	>>>
//	test ./host/api TestRefusesLargeBodies
//
// The text before === occurs once in the file. Files of the checkout stay as they are: the
// changed one is laid over it by go test -overlay.
package main
