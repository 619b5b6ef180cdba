# can: read its examples
# cannot: its scripts: a browser, and servers of the run
grep -q playwright /mnt/skills/webapp-testing/examples/element_discovery.py
