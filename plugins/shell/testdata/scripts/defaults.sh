# Commands with quotes of their own in parameter expansions, as scripts find their folder.
root="${PLUGIN_ROOT:-$(cd "$(dirname "/tmp/x")" && pwd)}"
echo "$root"
text="${UNSET:-"$(echo "a  b")"}"
echo "$text"
echo "${UNSET:-"q  r"} ${UNSET:-$(echo "in  $(echo "deep  x")")}"
echo "${UNSET:-$(printf '%s)' "p(  q")}"
echo "${UNSET:=$(echo "as  signed")}" "$UNSET"
list=("${NONE:-$(echo "one  two")}" ${NONE:-$(echo "three four")})
printf '<%s>' "${list[@]}"
echo
