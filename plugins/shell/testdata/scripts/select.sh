#!/bin/bash
PS3='pick: '
select c in red green quit; do
  case $c in quit) echo bye; break ;; "") echo "no such: $REPLY" ;; *) echo "you took $c" ;; esac
done <<< $'1\n9\n3' 2>/dev/null
