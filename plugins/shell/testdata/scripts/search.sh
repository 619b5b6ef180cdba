# Where programs are found, and what a script knows of itself.
(PATH=/nowhere; ls; echo "ls $?"; echo "echo $?"; printf '%s\n' printf; command ls; echo "command $?")
PATH=/nowhere ls; echo "once $?"
(PATH=; ls; echo "empty $?")
(PATH=/nowhere; command -v ls; echo "command -v $?"; type ls; echo "type $?"; type -t echo; /bin/echo "by path")
command -v ls
(PATH=/nowhere; ls | cat; echo "pipe ${PIPESTATUS[*]}")
mkdir -p bin
printf '#!/bin/sh\necho "own date: $*"\n' > bin/date
chmod +x bin/date
(PATH="$PWD/bin:$PATH"; date -u; command date x; type -t date)
(PATH="$PATH:$PWD/bin"; date -u -d @0 +%Y)
rm -r bin
[ -n "$HOSTNAME" ] && [ "$HOSTNAME" = "$(hostname)" ] && echo "host named"
[ "$UID" = "$(id -u)" ] && [ "$EUID" = "$UID" ] && echo "user known"
bash -c '[ "$UID" = "$(id -u)" ] && [ -n "$HOSTNAME" ] && echo "in a child too"'
(UID=0) 2>/dev/null || echo "UID is read-only"
[ ~root = /root ] && echo "home of root"
echo ~nobody-else
echo "$OSTYPE $HOSTTYPE $MACHTYPE"
