#!/bin/bash
set -u
trap 'echo "exit trap $?"' EXIT
echo "${1-none}"
echo "$undefined_variable" 2>/dev/null
echo not reached
