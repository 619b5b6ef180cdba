#!/bin/bash
greet() { echo "hi $1 from $WHO"; }
export WHO=parent; export -f greet
bash -c 'greet child'
printf '%s\n' a b | xargs -I{} bash -c 'greet "{}"'
export -fn greet 2>/dev/null; unset -f greet
bash -c 'greet x' 2>/dev/null || echo "gone, $?"
