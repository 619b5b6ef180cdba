#!/bin/sh
# fetch.sh: puts the package test of CPython 3.15 into the state folder, from Debian's
# packages libpython3.15-testsuite and libpython3.15-stdlib of the suite "sid", by the
# mirror that this machine's apt has. It changes nothing of the system: its lists and
# packages lie in a temporary folder.
set -eu
cd "$(dirname "$0")/../../.."
state=${OPENSKILL_STATE_DIR:-.openskill}
version=3.15.2-1
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

for tool in apt-get dpkg-deb; do
	command -v $tool >/dev/null || { echo "fetch.sh: $tool is missing; on other systems unpack a CPython 3.15 source archive and set OPENSKILL_TEST_CPYTHON_FOLDER to its folder Lib" >&2; exit 1; }
done
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 'Created-By: Packages' | awk '$2 == "Debian" && $3 == "Debian" {print $1; exit}')
[ -n "$mirror" ] || { echo "fetch.sh: apt has no mirror of Debian; run apt-get update first" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/debs" "$dir/root"
echo "deb [signed-by=$keyring] $mirror sid main" >"$dir/sources.list"
apt() {
	apt-get -q -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache" \
		-o Acquire::Languages=none -o APT::Sandbox::User=root "$@"
}
apt update
cd "$dir/debs"
apt download "libpython3.15-testsuite=$version" "libpython3.15-stdlib=$version"
for deb in *.deb; do
	dpkg-deb -x "$deb" "$dir/root"
done
cd - >/dev/null
mkdir -p "$state"
rm -rf "$state/cpython-tests.new"
mkdir "$state/cpython-tests.new"
cp -R "$dir/root/usr/lib/python3.15/test" "$state/cpython-tests.new/test"
rm -rf "$state/cpython-tests"
mv "$state/cpython-tests.new" "$state/cpython-tests"
echo "the tests of CPython $version are in $state/cpython-tests"
