#!/bin/bash
cat missing 2>/dev/null; echo "cat $?"
cd missing 2>/dev/null; echo "cd $?"
nosuchcommand 2>/dev/null; echo "none $?"
python_not_here_9 2>/dev/null; echo $?
touch f; ./f 2>/dev/null; echo "not executable $?"; rm f
mkdir d; cat d 2>/dev/null; echo "dir $?"; rmdir d
bash -c 'if' 2>/dev/null; echo "syntax $?"
bash -c 'exit 300'; echo "wrap $?"
(set -e; false; echo no); echo "e $?"
readonly R=1; (R=2) 2>/dev/null; echo "readonly $?"
$(exit 3); echo "sub $?"
echo ${x:?must be set} 2>/dev/null
echo after
