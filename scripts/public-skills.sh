#!/bin/sh
# public-skills.sh DIR: puts into DIR/bmad a folder of Agent Skills that others have
# published, from a package of npm, pinned with its hash. docs/journeys.md tries them, and
# the test of that page. Nothing of the package is run here. Where it cannot be had a line
# says so, and that part of the page is skipped.
set -eu

dir=$1
package=bmad-method@6.12.0 # MIT; 50 skills and 11 scripts in Python
sum=ac05c93f0b3c4256bb4072e6e1ff181eaad6cc0a64a27a63893bfb2b0b64aed2
[ "$(cat "$dir/ready" 2>/dev/null)" != "$sum" ] || exit 0
mkdir -p "$dir"
work=$(mktemp -d "$dir/.new-XXXXXX")
trap 'rm -rf "$work"' EXIT
if command -v npm >/dev/null 2>&1 &&
	name=$(cd "$work" && npm pack "$package" --ignore-scripts --prefer-offline --fetch-retries=1 --silent) &&
	echo "$sum  $work/$name" | sha256sum -c --status &&
	(cd "$work" && tar xzf "$name" package/LICENSE package/src/core-skills package/src/bmm-skills); then
	mv "$work/package/LICENSE" "$work/package/src/"
	rm -rf "$dir/bmad"
	mv "$work/package/src" "$dir/bmad"
	echo "$sum" >"$dir/ready"
else
	echo "public-skills: no public Agent Skills: npm could not fetch $package, or it is not the one that is pinned" >&2
fi
