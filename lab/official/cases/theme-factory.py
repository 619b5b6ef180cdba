# can: read a theme and its showcase, and use its colours in a page
# cannot:
import re
from pypdf import PdfReader
theme = open("/mnt/skills/theme-factory/themes/ocean-depths.md").read()
colors = re.findall(r"#[0-9a-fA-F]{6}", theme)
assert len(colors) >= 4, theme
assert "Ocean" in "".join(p.extract_text() for p in PdfReader("/mnt/skills/theme-factory/theme-showcase.pdf").pages)
open("page.html", "w").write("<style>body{background:%s;color:%s}</style>" % (colors[0], colors[-1]))
