# can: unpack, duplicate a slide, edit, clean and pack a presentation, by its scripts
# cannot: thumbnail.py and PDF: LibreOffice; text by markitdown, new ones by pptxgenjs, unless the operator adds them
set -e
python - <<'END'
import zipfile
package = "http://schemas.openxmlformats.org/package/2006"
office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
types = "application/vnd.openxmlformats-officedocument.presentationml"
names = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="%s" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"' % office
links = lambda *of: f'<Relationships xmlns="{package}/relationships">' + "".join(
    f'<Relationship Id="rId{i + 1}" Type="{office}/{kind}" Target="{to}"/>' for i, (kind, to) in enumerate(of)) + "</Relationships>"
group = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
text = '<p:sp><p:nvSpPr><p:cNvPr id="2" name="Title"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>Hello</a:t></a:r></a:p></p:txBody></p:sp>'
with zipfile.ZipFile("a.pptx", "w") as z:
    z.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
               f'<Default Extension="xml" ContentType="application/xml"/><Override PartName="/ppt/presentation.xml" ContentType="{types}.presentation.main+xml"/>'
               f'<Override PartName="/ppt/slides/slide1.xml" ContentType="{types}.slide+xml"/></Types>')
    z.writestr("_rels/.rels", links(("officeDocument", "ppt/presentation.xml")))
    z.writestr("ppt/presentation.xml", f'<p:presentation {names}><p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst><p:sldSz cx="9144000" cy="6858000"/><p:notesSz cx="6858000" cy="9144000"/></p:presentation>')
    z.writestr("ppt/_rels/presentation.xml.rels", links(("slide", "slides/slide1.xml")))
    z.writestr("ppt/slides/slide1.xml", f'<p:sld {names}><p:cSld><p:spTree>{group}{text}</p:spTree></p:cSld></p:sld>')
    z.writestr("ppt/slides/_rels/slide1.xml.rels", links())
END
skill=/mnt/skills/pptx/scripts
python $skill/office/unpack.py a.pptx unpacked/
added=$(python $skill/add_slide.py unpacked/ slide1.xml | grep -o '<p:sldId [^>]*>')
sed -i "s#</p:sldIdLst>#$added</p:sldIdLst>#" unpacked/ppt/presentation.xml
sed -i 's/Hello/Goodbye/' unpacked/ppt/slides/slide2.xml
python $skill/clean.py unpacked/
python $skill/office/pack.py unpacked/ b.pptx --original a.pptx
unzip -p b.pptx ppt/slides/slide2.xml | grep Goodbye
