#!/bin/sh
# Makes dist/: for each architecture of ARCH a static binary in a tar.gz and in a package
# for Debian, its bill of materials, and SHA256SUMS. scripts/dist packs; this builds.
# The same commit gives the same bytes, in any folder.
set -eu
GO=${GO:-go}
ARCH=${ARCH:-amd64,arm64}
to=${1:-dist}
repo=$(cd "$(dirname "$0")/.." && pwd)
cd "$repo"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
case $to in /*) ;; *) to=$repo/$to ;; esac
rm -rf "$to"
mkdir -p "$to/build"
# What a commit does not fix is fixed here: no flags of the machine's own, one level of each
# architecture, and no path, which -trimpath takes out.
export GOFLAGS= CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GOWORK=
GOWORK=off $GO -C lab run ./engine "$repo/.openskill"
build() {
	GOOS=$1 GOARCH=$2 $GO build -trimpath -buildvcs="${VCS:-true}" -ldflags='-s -w -buildid=' -o "$3" ./cmd/openskill
}
for arch in $(echo "$ARCH" | tr , ' '); do
	build linux "$arch" "$to/build/$arch/openskill"
done
# Completions and pages are made by one that runs here, which may be another system.
own=$($GO env GOHOSTARCH)
native=$to/build/$own/openskill
if [ "$($GO env GOHOSTOS)" != linux ] || [ ! -x "$native" ]; then
	native=$to/build/native/openskill
	build "$($GO env GOHOSTOS)" "$own" "$native"
fi
$GO -C scripts/dist build -trimpath -o "$to/build/dist" .
"$to/build/dist" --repo "$repo" --to "$to" --native "$native" --arch "$ARCH"
rm -rf "$to/build"
cat "$to/SHA256SUMS"
