# can: search and read its references
# cannot: call the API: the code has no network
set -e
test "$(grep -rl 'cache_control' /mnt/skills/claude-api | wc -l)" -gt 5
sed -n 1,20p /mnt/skills/claude-api/python/claude-api/README.md
