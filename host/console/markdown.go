package console

import (
	"bytes"
	"html"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// mostMarkdown is how much of a SKILL.md a page shows, in bytes.
const mostMarkdown = 128 << 10

// markdown makes HTML of the Markdown of a stranger: HTML in it is left out, images are
// named and never loaded, links lead to http and https only and say where.
func markdown(source string) string {
	m := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(tame{}, 100))),
	)
	source = visible(source, mostMarkdown)
	var b bytes.Buffer
	if dear(source) || m.Convert([]byte(source), &b) != nil {
		return "<pre>" + html.EscapeString(source) + "</pre>"
	}
	return b.String()
}

// The bounds of what is read as Markdown. Reading brackets takes the square of their number,
// so do quotes and lists in each other, and stars and underscores of one paragraph can take
// more than that; and each row of a table has as many cells as its head, whatever it says: a
// file of nothing else would take half a minute, and gigabytes.
const (
	mostBrackets = 2000
	mostQuotes   = 64   // at the beginning of a line, and of items of lists there
	mostMarks    = 2000 // stars, underscores and tildes of lines without an empty one between
	mostCells    = 20_000
)

// dear reports whether a text is better shown as it is.
func dear(source string) bool {
	if strings.Count(source, "[") > mostBrackets {
		return true
	}
	marks, cells, rows, columns := 0, 0, 0, 0
	for line := range strings.SplitSeq(source, "\n") {
		begin := line[:len(line)-len(strings.TrimLeft(line, "> \t-+*0123456789.)"))]
		if items(begin) > mostQuotes ||
			strings.Count(begin, ">")+strings.Count(begin, "-")+strings.Count(begin, "*")+strings.Count(begin, "+") > mostQuotes && strings.ContainsAny(begin, ">") {
			return true
		}
		if strings.Trim(line, " \t") == "" {
			cells += rows * columns
			marks, rows, columns = 0, 0, 0
		}
		rows, columns = rows+1, max(columns, strings.Count(line, "|"))
		if cells+rows*columns > mostCells {
			return true
		}
		if marks += strings.Count(line, "*") + strings.Count(line, "_") + strings.Count(line, "~"); marks > mostMarks {
			return true
		}
	}
	return false
}

// items is how many items of numbered lists begin at the beginning of a line, each within
// the one before.
func items(begin string) int {
	return strings.Count(begin, ". ") + strings.Count(begin, ") ") + strings.Count(begin, ".\t") + strings.Count(begin, ")\t")
}

// withoutFrontmatter is a SKILL.md without the lines between its first two ---.
func withoutFrontmatter(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	rest, ok := strings.CutPrefix(s, "---\n")
	if !ok {
		return s
	}
	if _, body, ok := strings.Cut(rest, "\n---\n"); ok {
		return body
	}
	return s
}

// tame changes a document before it is written.
type tame struct{}

func (tame) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	src := reader.Source()
	var images, dead []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // it never fails
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Image:
			images = append(images, n)
		case *ast.Link:
			if !safeLink(string(n.Destination)) {
				dead = append(dead, n)
				break
			}
			n.SetAttributeString("rel", []byte("noopener noreferrer nofollow"))
			n.Title = nil
		case *ast.AutoLink:
			if !safeLink(string(n.URL(src))) {
				dead = append(dead, n)
				break
			}
			n.SetAttributeString("rel", []byte("noopener noreferrer nofollow"))
		}
		return ast.WalkContinue, nil
	})
	for _, n := range images {
		alt := string(n.Text(src)) //nolint:staticcheck // what an image says instead of itself
		become(n, "[image: "+oneLine(alt, 200)+"]")
	}
	for _, n := range dead {
		become(n, string(n.Text(src))) //nolint:staticcheck // its words stay, without the link
	}
}

// become puts text in the place of a node.
func become(n ast.Node, words string) {
	if p := n.Parent(); p != nil {
		s := ast.NewString([]byte(words))
		p.ReplaceChild(p, n, s)
	}
}

// safeLink reports whether a link may be one: http or https, and nothing that a browser
// could take for something else.
func safeLink(to string) bool {
	to = strings.ToLower(to)
	return strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "http://")
}
