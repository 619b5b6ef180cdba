#include "textflag.h"

// In struct siginfo: si_code at 8, si_addr at 16. In struct ucontext: gregs at 40.
#define SI_CODE 8
#define SI_ADDR 16
#define UC_RIP  168

// An entry of codes, and one of arenas; see there.
#define CODE_VERSION 0
#define CODE_FROM    8
#define CODE_TO      16
#define CODE_TABLE   24
#define CODE_COUNT   32
#define CODE_SIZE    40
#define ARENA_FROM   0
#define ARENA_TO     8
#define ARENA_SIZE   16

// handler is what the kernel calls, with DI the signal, SI *siginfo, DX *ucontext, on the
// stack for signals that Go made for the thread, with all signals masked. It has neither a
// stack nor a g, and leaves DI, SI, DX and SP as they came, for the jump to Go's.
TEXT ·handler(SB), NOSPLIT|NOFRAME|TOPFRAME, $0-0
	// What a process sent is Go's.
	MOVL SI_CODE(SI), AX
	CMPL AX, $0
	JLE  go

	// Whose code was it? An entry that changes is not it, as its code would be running.
	MOVQ UC_RIP(DX), CX
	LEAQ ·codes(SB), R8
	MOVQ ·codeCount(SB), R9
code:
	TESTQ R9, R9
	JEQ   go
	MOVQ  CODE_VERSION(R8), R10
	MOVQ  CODE_TO(R8), R11
	CMPQ  CX, R11
	JCC   nextcode
	MOVQ  CODE_FROM(R8), R11
	CMPQ  CX, R11
	JCS   nextcode
	MOVQ  CODE_TABLE(R8), R12
	MOVQ  CODE_COUNT(R8), R13
	CMPQ  R10, CODE_VERSION(R8)
	JNE   nextcode
	TESTQ $1, R10
	JEQ   guest
nextcode:
	ADDQ $CODE_SIZE, R8
	DECQ R9
	JMP  code

guest:
	// A page that cannot be accessed gives SEGV_MAPERR (1) or SEGV_ACCERR (2).
	CMPL AX, $2
	JHI  crash
	MOVQ SI_ADDR(SI), AX
	LEAQ ·arenas(SB), R8
	MOVQ ·arenaCount(SB), R9
arena:
	TESTQ R9, R9
	JEQ   crash
	CMPQ  AX, ARENA_TO(R8)
	JCC   nextarena
	CMPQ  AX, ARENA_FROM(R8)
	JCC   function
nextarena:
	ADDQ $ARENA_SIZE, R8
	DECQ R9
	JMP  arena

function:
	// R11 is where the code begins, R12 the pairs, R13 how many. The last function that begins
	// at or before CX, and has it before its landing, is the one.
	SUBQ R11, CX
	XORQ R8, R8  // all before it begin at or before CX
	MOVQ R13, R9 // all from it on begin behind CX
search:
	CMPQ R8, R9
	JCC  found
	LEAQ (R8)(R9*1), R10
	SHRQ $1, R10
	MOVL (R12)(R10*8), AX
	CMPQ AX, CX
	JHI  before
	LEAQ 1(R10), R8
	JMP  search
before:
	MOVQ R10, R9
	JMP  search
found:
	TESTQ R8, R8
	JEQ   crash
	MOVL  -4(R12)(R8*8), AX
	CMPQ  CX, AX
	JCC   crash
	ADDQ  R11, AX
	MOVQ  AX, UC_RIP(DX)
	LOCK
	INCQ  ·faults(SB)
	RET                  // to the restorer, which is rt_sigreturn

crash:
	// As if a process had sent it: Go then prints what it knows, on this stack, and ends, in the
	// place of a panic on the guest's.
	MOVL $0, SI_CODE(SI)
go:
	MOVQ ·goHandler(SB), AX
	JMP  AX

// func handlerAddress() uintptr
TEXT ·handlerAddress(SB), NOSPLIT, $0-8
	MOVQ $·handler(SB), AX
	MOVQ AX, ret+0(FP)
	RET
