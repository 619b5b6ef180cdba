# can: unpack, edit, comment, pack and validate a document, by its scripts
# cannot: accept_changes.py, .doc and PDF: LibreOffice; pages as pictures: Poppler; new documents by docx of npm, unless the operator adds it
set -e
python - <<'END'
import zipfile
w = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
package = "http://schemas.openxmlformats.org/package/2006"
main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
with zipfile.ZipFile("a.docx", "w") as z:
    z.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
               f'<Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="{main}"/></Types>')
    z.writestr("_rels/.rels", f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" Type="{office}/officeDocument" Target="word/document.xml"/></Relationships>')
    z.writestr("word/_rels/document.xml.rels", f'<Relationships xmlns="{package}/relationships"></Relationships>')
    z.writestr("word/document.xml", f'<w:document xmlns:w="{w}"><w:body><w:p><w:r><w:t>Hello</w:t></w:r></w:p></w:body></w:document>')
END
skill=/mnt/skills/docx/scripts
python $skill/office/unpack.py a.docx unpacked/
sed -i 's/Hello/Goodbye/' unpacked/word/document.xml
python $skill/comment.py unpacked/ 0 "Please check"
python $skill/office/pack.py unpacked/ b.docx --original a.docx | grep PASSED # it validates
unzip -p b.docx word/document.xml | grep Goodbye
unzip -p b.docx word/comments.xml | grep 'Please check'
