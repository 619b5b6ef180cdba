#!/bin/bash
set -x
a=1
echo "$a" b
set +x 2>/dev/null
(set -x; true) 2>/dev/null
{ PS4='> '; set -x; true $a; set +x; } 2>/dev/null
echo done
