# can: instructions alone: read, and write the page
# cannot: show it: a browser
set -e
grep -qi 'typography' /mnt/skills/frontend-design/SKILL.md
echo '<!doctype html><title>A page</title>' > index.html
