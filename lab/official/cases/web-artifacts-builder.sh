# can: read its instructions
# cannot: its two scripts: they install packages of npm from the network, and bundle with Vite and Parcel
grep -q init-artifact.sh /mnt/skills/web-artifacts-builder/SKILL.md
