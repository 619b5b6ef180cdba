# can: read the example for the kind of text
# cannot:
grep -i 'update' /mnt/skills/internal-comms/examples/3p-updates.md
