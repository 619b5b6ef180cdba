# can: instructions alone: read, and keep drafts in a workspace
# cannot:
set -e
grep -c '^## ' /mnt/skills/doc-coauthoring/SKILL.md
echo '# Draft' > draft.md
