#!/bin/sh
# public-skills.sh DIR: puts folders of Agent Skills that others have published into DIR,
# from packages of npm and PyPI, each pinned with its hash. docs/journeys.md tries those of
# bmad; a test of host/agentskills loads five of them, and one of
# cmd/openskill/internal/parity/community runs their scripts in the sandbox, with packages. Nothing of a
# package is run here. Where one cannot be had a line says so, and what needs it is skipped.
set -eu

dir=$1

# fetch NAME PACKAGE SUM FILE…: DIR/NAME gets these files and folders of the package, and
# DIR/NAME.ready its hash and their names.
fetch() {
	name=$1 package=$2 sum=$3
	shift 3
	[ "$(cat "$dir/$name.ready" 2>/dev/null)" != "$sum $*" ] || return 0
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
		echo "$sum $*" >"$dir/$name.ready"
	else
		echo "public-skills: no Agent Skills of $package: npm could not fetch it, or it is not the one that is pinned" >&2
	fi
	rm -rf "$work"
}

# wheel NAME PACKAGE SUM FOLDER: DIR/NAME gets this folder of a package of PyPI.
wheel() {
	name=$1 package=$2 sum=$3 folder=$4
	[ "$(cat "$dir/$name.ready" 2>/dev/null)" != "$sum" ] || return 0
	work=$(mktemp -d "$dir/.new-XXXXXX")
	if python3 -m pip download --quiet --no-deps --only-binary :all: --disable-pip-version-check -d "$work" "$package" &&
		echo "$sum  $(ls "$work"/*.whl)" | sha256sum -c --status &&
		python3 -m zipfile -e "$work"/*.whl "$work/files"; then
		rm -rf "${dir:?}/$name" "$work/files/$folder"/*/venv # what an author packed by mistake
		mv "$work/files/$folder" "$dir/$name"
		echo "$sum" >"$dir/$name.ready"
	else
		echo "public-skills: no Agent Skills of $package: pip could not fetch it, or it is not the one that is pinned" >&2
	fi
	rm -rf "$work"
}

# commit NAME REPOSITORY COMMIT FOLDER…: DIR/NAME gets the folders of a commit, whose hash git
# compares.
commit() {
	name=$1 repository=$2 commit=$3
	shift 3
	[ "$(cat "$dir/$name.ready" 2>/dev/null)" != "$commit $*" ] || return 0
	work=$(mktemp -d "$dir/.new-XXXXXX")
	if command -v git >/dev/null 2>&1 && git init -q "$work" &&
		git -C "$work" remote add origin "$repository" && git -C "$work" sparse-checkout set "$@" &&
		git -C "$work" fetch -q --depth 1 --filter=blob:none origin "$commit" && git -C "$work" checkout -q "$commit"; then
		rm -rf "${dir:?}/$name" "$work/.git"
		mv "$work" "$dir/$name"
		echo "$commit $*" >"$dir/$name.ready"
	else
		echo "public-skills: no Agent Skills of $repository: git could not fetch $commit" >&2
	fi
	rm -rf "$work"
}

# packages FILE: DIR/packages gets the wheels and tarballs that scripts of these folders import,
# which FILE lists with their hashes.
packages() {
	file=$1 sum=$(sha256sum "$1" | cut -c1-64)
	[ "$(cat "$dir/packages.ready" 2>/dev/null)" != "$sum" ] || return 0
	work=$(mktemp -d "$dir/.new-XXXXXX")
	# shellcheck disable=SC2046 # each word is a package
	if python3 -m pip download --quiet --no-deps --only-binary :all: --platform any --implementation py --abi none --python-version 3.13 \
		--disable-pip-version-check -d "$work" $(sed -n 's/^[0-9a-f]\{64\} python //p' "$file") &&
		(cd "$work" && npm pack $(sed -n 's/^[0-9a-f]\{64\} npm //p' "$file") --ignore-scripts --prefer-offline --fetch-retries=1 --silent >/dev/null) &&
		[ "$(sha256sum "$work"/* | cut -c1-64 | sort)" = "$(sed -n 's/^\([0-9a-f]\{64\}\) .*/\1/p' "$file" | sort)" ]; then
		rm -rf "${dir:?}/packages"
		mv "$work" "$dir/packages"
		echo "$sum" >"$dir/packages.ready"
	else
		echo "public-skills: no packages for public scripts: pip or npm could not fetch them, or they are not those of $file" >&2
	fi
	rm -rf "$work"
}

mkdir -p "$dir"
trap 'rm -rf "$dir"/.new-*' EXIT

# MIT; 0.8 MB; 50 skills, and 24 scripts in Python
fetch bmad bmad-method@6.12.0 ac05c93f0b3c4256bb4072e6e1ff181eaad6cc0a64a27a63893bfb2b0b64aed2 \
	package/LICENSE package/src/core-skills package/src/bmm-skills
# MIT; 4.6 MB; 197 skills of many authors, and 479 translations of them; hooks and tools for Node
fetch ecc ecc-universal@2.0.0 14b1afb47e1b21041ff852d7540c07393e2c359addd7ee5e0e7889feac6673eb \
	package/LICENSE package/package.json package/skills package/docs/ja-JP/skills package/docs/ko-KR/skills package/docs/tr/skills \
	package/docs/zh-CN/skills package/docs/zh-TW/skills package/scripts package/hooks package/.cursor/hooks package/agents \
	package/commands package/manifests package/schemas package/rules
# MIT; 5.2 MB; 51 skills; shell scripts and hooks for Node
fetch specweave specweave@1.0.593 dfe134478c5df5355c8e586ef6821ac5b5000e4b37c116bcaafb36a4ef27c500 \
	package/LICENSE package/plugins/specweave
# MIT; 0.1 MB; 34 skills that many wrote for another agent
fetch eliza @elizaos/skills@2.0.0-beta.1 26f99783c8e9d13aaff248f29ce421d43d8bccf88e2a2fd7afc4b0047a07a470 \
	package/package.json package/skills
# MIT; 1.0 MB; 23 skills, without four that are under another licence
fetch ai-labs ai-labs-claude-skills@2.0.1 cb1d41920bf61ec241c304f2578b3462513293a4ff450f1129ed978f8823f719 \
	--exclude=package/dist/skills/document-skills package/LICENSE package/dist/skills
# MIT; 3.5 MB; 44 skills; helpers in shell and Node
fetch claude-flow claude-flow@3.43.0 04f76c3bdd22b45bbc30ec0d0fc64ec67e363dff907b768712869e70d3687f80 \
	package/LICENSE package/.claude package/.claude-plugin/scripts
# MIT; 0.7 MB; a planner's tools and hooks for Node, and three scanners in shell
fetch gsd get-shit-done-cc@1.32.0 bc37f2b7aabdebfe7321bcc42d7925c307f44dd66ef247bb94f333f352546b4c \
	package/LICENSE package/package.json package/get-shit-done package/hooks package/scripts package/agents package/commands
# MIT; 8.6 MB; 43 skills; hooks for Node, and shell scripts
fetch omc oh-my-claude-sisyphus@5.5.0 339ddb717c14f009947d65e2b47929e23b602e88ea5e7da954146bdb986f58ae \
	package/LICENSE package/package.json package/scripts package/skills package/templates package/hooks package/agents
# MIT; 9 MB; agents with tools and hooks for Node, shell and Python
fetch aios aios-core@4.4.6 a18ae7682e37a45d46def70d1620864bf1718255bc4169679ae30d2e1d4a4057 \
	package/LICENSE package/package.json package/.aios-core package/.claude package/scripts
# MIT and Apache-2.0, a LICENSE.upstream in each; 15 MB; 483 skills of five public repositories
wheel dex dex-trove==0.1.6 86915c0d3c807b497def7fa44a5d7e0775926832540324bd35b564bf17b7fa49 dex_trove/skills
# MIT; 8 MB; 14 skills; 280 scripts in Python that send requests, and a library that they share
wheel jira jira-assistant-skills==3.0.0 6a026779fb82da719703d794fd32525a011c45452644db04c4699fad9178310e jira_assistant_skills/skills
# Apache-2.0; 1.4 MB; 31 skills; scripts in Python for requests, documents and workspaces
wheel mythril mythril-agent-skills==0.3.1 39b27df3939c82d7eb0aefa9d8ec98e2907238faa07c250f0cb2bc9d94e41cde mythril_agent_skills/skills

# MIT; 0.2 MB; 28 skills of many authors, with scripts for the shell and for Node that send requests
commit openclaw https://github.com/openclaw/skills 3a5f649f604cb32910dc9ddb81d9be873b2c3d42 \
	skills/0xterrybit/x402 skills/arun-8687/tavily-search skills/barneyjm/places skills/barneyjm/query skills/bohdanpodvirnyi/strava \
	skills/clawdbot51-oss/supermemory skills/dfinzer/opensea skills/epwhesq/claw-club skills/fardeenxyz/exa \
	skills/garrrikkotua/octolens skills/madmantim/paperless-docs skills/mvanhorn/xai skills/t-sinclair2500/lm-studio-subagents skills/zats/perplexity \
	skills/hjanuschka/wienerlinien skills/janhcla/clawdbot-documentation-expert skills/jaysonsantos/bvg-route skills/kesslerio/shorten \
	skills/manmal/a-nach-b skills/manmal/oebb-scotty skills/mvanhorn/parallel skills/nextfrontierbuilds/fear-greed \
	skills/nextfrontierbuilds/prism-scanner skills/paradoxfuzzle/ddg-search skills/rubenfb23/arxiv-watcher skills/shawnhansen/voicenotes \
	skills/simskii/umea-data skills/stopmoclay/fathom

packages "$(cd "$(dirname "$0")" && pwd)/public-packages.txt"
