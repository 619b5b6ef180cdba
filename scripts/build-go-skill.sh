#!/bin/sh
# build-go-skill.sh FOLDER: builds the main package in FOLDER into
# FOLDER/NAME.wasm, NAME being the folder's.
set -eu

folder=${1:?usage: build-go-skill.sh FOLDER}
name=$(basename "$folder")
made=$(mktemp "$folder/.$name.wasm.XXXXXX")
trap 'rm -f "$made"' EXIT
# No version control stamp and no paths: the same sources give the same bytes.
GOOS=wasip1 GOARCH=wasm GOFLAGS= CGO_ENABLED=0 \
	"${GO:-go}" build -trimpath -buildvcs=false -ldflags='-s -w' -o "$made" "./$folder"
chmod 644 "$made"
mv -f "$made" "$folder/$name.wasm"
