# can: read its references and its evaluation
# cannot: evaluation.py: the package anthropic, and the network
set -e
python -c 'import xml.etree.ElementTree as x; print(len(x.parse("/mnt/skills/mcp-builder/scripts/example_evaluation.xml").findall(".//qa_pair")), "questions")'
grep -q 'FastMCP' /mnt/skills/mcp-builder/reference/python_mcp_server.md
