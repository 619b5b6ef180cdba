#!/bin/bash
s="release-1.24.3"
if [[ $s =~ ^release-([0-9]+)\.([0-9]+)\.([0-9]+)$ ]]; then
  echo "${BASH_REMATCH[0]}: ${BASH_REMATCH[1]} ${BASH_REMATCH[2]} ${BASH_REMATCH[3]}"
fi
[[ $s == release-* && $s != *beta* ]] && echo glob
[[ -z "" && -n x ]] && echo empty
[[ a < b ]] && echo order
[[ 10 -gt 9 ]] && echo number
touch old; sleep 0.05; touch new
[[ new -nt old ]] && echo newer
[[ old -ot new ]] && echo older
[ new -nt old ] && echo newer too
[[ missing -nt old ]] || echo missing is not newer
touch plain; printf '#!/bin/sh\necho ran\n' > tool.sh
chmod +x tool.sh
[[ -x tool.sh ]] && echo executable
[[ -x plain ]] || echo not executable
[[ -r plain && -w plain && -f plain && ! -d plain && -e . && -d . ]] && echo file tests
[[ -s tool.sh && ! -s plain ]] && echo sizes
./tool.sh
rm -f old new plain tool.sh
case abc in a?c) echo case ;; esac
! false && echo negated
