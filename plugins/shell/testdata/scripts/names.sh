#!/bin/bash
# What scripts ask about commands before they use them.
echo "$PATH"
type bash ls jq echo if nosuch 2>&1 | sed "s|^.*line|line|"
type -t ls; type -t bash; type -t echo; type -t if; type -t nosuch; echo "rc $?"
type -p grep; type -P sed; type -a basename
command -v bash jq echo nosuch; command -v nosuch; echo "rc $?"
command -V ls; command -V echo
which ls curl nosuch; echo "rc $?"
hash ls; echo "rc $?"; type ls; hash -r; type ls
hash nosuch 2>/dev/null; echo "rc $?"
for tool in curl jq git-nosuch; do command -v "$tool" >/dev/null 2>&1 || echo "missing: $tool"; done
[ -x "$(command -v awk)" ] && echo executable
"$(command -v printf)" '%s\n' builtin; "$(type -P printf)" '%s\n' program; /usr/bin/env printf 'by %s\n' env
env -i bash -c 'echo "${PATH:+set}"; ls -d /'
curl -s "https://example.com/a b"; echo "rc $?"; curl "https://example.com/a b" 2>&1; echo "rc $?"
