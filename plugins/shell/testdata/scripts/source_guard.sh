#!/usr/bin/env bash
DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
basename "$DIR"
main() { echo "main $*"; }
if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then main "$@"; fi
basename "$0"
echo "${BASH_VERSINFO[0]} ${BASH_VERSION%%.*}"
[ "${BASH_VERSINFO:-0}" -ge 4 ] && echo modern
printf 'helper() { echo "helper of ${BASH_SOURCE[0]##*/}"; }\n' > lib.sh
source "./lib.sh"; helper; rm lib.sh
echo "line $LINENO"
