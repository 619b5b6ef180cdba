# can: read, change and style a workbook with openpyxl and pandas
# cannot: recalc.py: LibreOffice; formulas keep no values
import pandas
from openpyxl import Workbook, load_workbook
from openpyxl.styles import Font
book = Workbook()
for row in [("item", "price"), ("tea", 2), ("cake", 3)]:
    book.active.append(row)
book.active["B4"] = "=SUM(B2:B3)"
book.active["A1"].font = Font(bold=True)
book.save("a.xlsx")
assert pandas.read_excel("a.xlsx")["price"][:2].sum() == 5
assert load_workbook("a.xlsx").active["B4"].value == "=SUM(B2:B3)"
