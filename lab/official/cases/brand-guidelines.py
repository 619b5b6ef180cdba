# can: draw in the colours of its SKILL.md, with Pillow
# cannot:
import re
from PIL import Image, ImageDraw
colors = re.findall(r"`(#[0-9a-f]{6})`", open("/mnt/skills/brand-guidelines/SKILL.md").read())
assert len(colors) >= 7, colors
image = Image.new("RGB", (100 * len(colors), 100))
for i, c in enumerate(colors):
    ImageDraw.Draw(image).rectangle((100 * i, 0, 100 * i + 99, 99), fill=c)
image.save("palette.png")
