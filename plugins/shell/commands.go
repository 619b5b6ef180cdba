package shell

import (
	"slices"
	"strings"
)

// commands are the names of the shell as a program: its own, and those of commands that are
// programs elsewhere.
var commands = strings.Fields(`
	sh bash
	arch awk b2sum base32 base64 basename basenc bc bunzip2 bzcat bzip2 cat chgrp chmod chown cksum clear cmp column comm cp curl
	cut date dd df diff dirname du echo egrep env envsubst expand expr factor false fgrep file find flock fmt fold gawk getconf
	grep groups gunzip gzip head hexdump hostid hostname iconv id install join jq less link ln logname ls mawk md5sum mkdir mktemp
	mv nawk nice nl nohup nproc numfmt od parallel paste patch pgrep pkill pr printenv printf ps pwd readlink realpath rev rg rm rmdir
	sed seq sha1sum sha224sum sha256sum sha384sum sha512sum shasum shuf sleep sort split sqlite3 stat strings sudo sum sync tac tail tar
	tee test timeout tomlq touch tr tree true truncate tsort tty uname unexpand uniq unlink unzip uptime users uuidgen watch wc
	wget which who whoami xargs xxd yes yq zcat zip
`)

// words are the commands that change the shell itself, or are parts of what they are elsewhere.
var words = strings.Fields(`
	. : [ alias assert bg bind break builtin caller cd command compgen complete compopt continue csv declare dirs disown dotenv
	enable eval exec exit export fc fg free getopts glob hash help history http jobs json kill let local locale log make man
	mapfile openssl popd pushd read readarray readonly retry return semver set shift shopt source template times trap type typeset
	ulimit umask unalias unset verify wait
`)

// Builtins are the commands of the shell in its own scripts, sorted.
func Builtins() []string {
	all := slices.Concat(commands, words)
	slices.Sort(all)
	return all
}
