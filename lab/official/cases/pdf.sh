# can: make a form with reportlab; find, describe and fill its fields, by its scripts; annotate, check boxes, merge
# cannot: pages as pictures and OCR: Poppler, tesseract; tables by pdfplumber, unless the operator adds it
set -e
python - <<'END'
from reportlab.pdfgen import canvas
form = canvas.Canvas("form.pdf")
form.drawString(72, 740, "Last name")
form.acroForm.textfield(name="last_name", x=150, y=730, width=200, height=20)
form.acroForm.checkbox(name="adult", x=150, y=700)
form.save()
plain = canvas.Canvas("plain.pdf")
plain.drawString(72, 740, "Last name")
plain.save()
END
skill=/mnt/skills/pdf/scripts
python $skill/check_fillable_fields.py form.pdf | grep 'has fillable'
python $skill/extract_form_field_info.py form.pdf fields.json
jq -r '.[].field_id' fields.json | sort | paste -sd' ' | grep 'adult last_name'
jq '[.[] | . + {description: "", value: (if .type == "checkbox" then .checked_value else "Simpson" end)}]' fields.json > values.json
python $skill/fill_fillable_fields.py form.pdf values.json filled.pdf
cat > boxes.json <<'END'
{"pages": [{"page_number": 1, "pdf_width": 595, "pdf_height": 842}],
 "form_fields": [{"page_number": 1, "description": "last name", "field_label": "Last name", "label_bounding_box": [72, 95, 130, 110],
                  "entry_bounding_box": [150, 95, 350, 115], "entry_text": {"text": "Simpson", "font_size": 12}}]}
END
python $skill/check_bounding_boxes.py boxes.json | grep SUCCESS
python $skill/fill_pdf_form_with_annotations.py plain.pdf boxes.json annotated.pdf
python - <<'END'
from pypdf import PdfReader, PdfWriter
assert PdfReader("filled.pdf").get_fields()["last_name"]["/V"] == "Simpson"
assert any(a.get_object()["/Contents"] == "Simpson" for a in PdfReader("annotated.pdf").pages[0]["/Annots"])
both = PdfWriter()
for name in "filled.pdf", "annotated.pdf":
    both.append(name)
both.write("both.pdf")
assert len(PdfReader("both.pdf").pages) == 2
END
