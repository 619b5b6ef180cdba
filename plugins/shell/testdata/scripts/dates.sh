#!/bin/bash
export TZ=UTC
date -d '2024-02-28 +2 days' +%F
date -d '2024-01-31 1 month' +%F
date -d '2024-03-15 -1 month' +%F
date -d '2024-03-31 2 days ago' +%F
date -d '2024-05-17 10:30:00 90 minutes' '+%F %T'
date -d '2024-05-17 10:30:00 + 90 minutes' '+%F %T' 2>/dev/null || echo a zone needs its number
date -d '2024-05-17 10:30 +0200' '+%F %T'
date -d @86400 '+%Y-%m-%d %H:%M:%S'
date -u -d '2024-12-25T08:15:30Z' +%s
date -d '2024-02-29 next year' +%F
date -d '15 March 2024' '+%A %j %U'
date -d 'Mar 5, 2024 5pm' '+%F %H:%M'
date -d '2024-06-01 12:00' '+%b %e, %Y %I:%M %p'
date -d '02/28/2024' +%D
date -d '20240704' '+%a %d %b'
date -d '2024-07-04 tomorrow' +%F
date -d '2024-07-04 last week' +%F
date --date='2024-01-01 00:00:00 +3 weeks 2 days' +%F
TZ=America/New_York date -d @1720000000 '+%F %T %Z %z'
date -d 'not a date' 2>/dev/null; echo "rc $?"
date -d '2024-01-01' -R
date -d '2024-01-01 13:14:15' -Iseconds
start=$(date -d '2024-01-01' +%s); end=$(date -d '2024-03-01' +%s); echo $(((end - start) / 86400)) days
a=$(date +%s); b=$EPOCHSECONDS; echo $((b - a < 3))
[[ $(date -d tomorrow +%s) -gt $(date +%s) ]] && echo ahead
printf '%(%Y-%m-%d)T\n' 0
[[ $EPOCHREALTIME =~ ^[0-9]+\.[0-9]{6}$ ]] && echo real time
