package shell

import "strings"

// commands are the names of the shell as a program: its own, and those of commands that are
// programs elsewhere.
var commands = strings.Fields(`
	sh bash
	awk base64 basename bc bzip2 cat chmod cmp column comm cp curl cut date dd df diff dirname du echo egrep env
	envsubst expand expr false fgrep find fmt fold grep gunzip gzip head hostname id iconv install join jq ln ls md5sum
	mkdir mktemp mv nl nproc od paste pr printenv printf pwd readlink realpath rev rm rmdir sed seq sha1sum sha256sum
	sha512sum shuf sleep sort split stat strings sum sync tac tail tar tee test timeout touch tr true truncate tsort tty
	uname unexpand uniq unzip wc wget which whoami xargs xxd yes yq zcat zip
`)
