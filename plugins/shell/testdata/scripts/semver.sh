#!/bin/bash
bump() {
  local IFS=.; local -a v=($1)
  case $2 in major) ((v[0]++)); v[1]=0; v[2]=0 ;; minor) ((v[1]++)); v[2]=0 ;; patch) ((v[2]++)) ;; *) return 1 ;; esac
  echo "${v[*]}"
}
bump 1.2.3 major; bump 1.2.3 minor; bump 1.2.3 patch; bump 1.2.3 none || echo bad
cmp_versions() { [ "$1" = "$2" ] && { echo '='; return; }; [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n1)" = "$1" ] && echo '<' || echo '>'; }
cmp_versions 1.10.0 1.9.0; cmp_versions 1.0 1.0; cmp_versions 0.9 1.0
v=v2.0.0-rc.1+build5; core=${v#v}; core=${core%%[-+]*}; echo $core
[[ $v =~ -([0-9A-Za-z.]+) ]] && echo "pre ${BASH_REMATCH[1]}"
