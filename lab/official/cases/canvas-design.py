# can: set a poster in its fonts: as PNG by matplotlib, as PDF by reportlab
# cannot: the same with Pillow, which is built without FreeType
import matplotlib.pyplot as plot
from matplotlib.font_manager import FontProperties
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas
font = "/mnt/skills/canvas-design/canvas-fonts/CrimsonPro-Bold.ttf"
plot.figure(figsize=(6, 8), facecolor="#f4f1de").text(0.1, 0.5, "Quiet\nForms", fontproperties=FontProperties(fname=font, size=80), color="#3d405b")
plot.savefig("poster.png")
pdfmetrics.registerFont(TTFont("Crimson", font))
pdf = canvas.Canvas("poster.pdf", pagesize=(600, 800))
pdf.setFont("Crimson", 120)
pdf.drawString(60, 400, "Quiet")
pdf.save()
