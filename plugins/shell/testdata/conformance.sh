#!/usr/bin/env bash
# The guest of the conformance suite: runnertest.Behaviour says what each of these does.
behaviour=$1 n=$2
shift 2

# pattern prints n bytes of lines of seven digits.
pattern() {
  local i last
  for ((i = 0; i * 8 + 8000 <= $1; i += 1000)); do printf '%07d\n' $(seq $i $((i + 999))); done
  last=$(($1 - i * 8))
  if ((last > 0)); then seq -f %07.0f $i $((i + 999)) | head -c $last; fi
}

case $behaviour in
  echo) cat ;;
  drain) wc -c ;;
  print) pattern "$n" ;;
  print-forever) pattern $((1 << 60)) ;;
  stderr) printf out; pattern "$n" >&2 ;;
  exit) printf bye; exit "$n" ;;
  spin) while :; do :; done ;;
  sleep) sleep "$(printf '%d.%03d' $((n / 1000)) $((n % 1000)))" ;;
  allocate) x=xxxxxxxx; while :; do x+=$x; done ;;
  recurse) down() { down; }; down ;;
  environment) env | jq -Rnc '{env: [inputs | capture("^(?<key>[^=]*)=(?<value>.*)")] | from_entries, args: $ARGS.positional}' --args -- "$n" "$@" ;;
  read-file) cat "$1" 2>/dev/null || { echo refused; exit 3; } ;;
  write-work) for name; do mkdir -p "$(dirname "work/$name")" && pattern "$n" >"work/$name" || exit 67; done ;;
  fill-work)
    block=$(head -c 65536 /dev/zero | tr '\0' x)
    for ((done = 0; done < n; done++)); do printf %s "$block" 2>/dev/null >"work/$done" || break; done
    echo $done ;;
  list-work) [[ -d work ]] && ls work | jq -Rnc '[inputs]' || echo null ;;
  write-data)
    ways=()
    try() { "${@:2}" >/dev/null 2>&1 && ways+=("$1"); }
    try write eval 'echo X >data/a.txt'
    try append eval 'echo X >>data/a.txt'
    try create eval 'echo X >data/new.txt'
    try remove rm data/a.txt
    try rename mv data/a.txt data/b.txt
    try folder mkdir data/new
    try times touch -d 2000-01-01 data/a.txt
    try link ln -s a.txt data/link
    try copy cp data/a.txt data/c.txt
    try edit sed -i s/a/b/ data/a.txt
    try truncate truncate -s 0 data/a.txt
    jq -nc '$ARGS.positional' --args -- "${ways[@]}" ;;
esac
