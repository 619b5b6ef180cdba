// Command messages prints every text of the product that people may read: what errors, log
// lines, problems and help say, one a line with its place, for a review.
//
//	go -C lab run ./messages [FOLDER…]
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// product are the folders whose texts users see.
var product = []string{"cmd", "host", "internal", "plugins", "sdk/client", "sdk/skill", "wasm"}

func main() {
	root := filepath.Join("..")
	folders := os.Args[1:]
	if len(folders) == 0 {
		folders = product
	}
	for _, folder := range folders {
		list, err := messages(root, folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for _, m := range list {
			fmt.Println(m)
		}
	}
}

// messages returns the texts of a folder as FILE:LINE: TEXT. Tests, generated files and
// packages named …test have none.
func messages(root, folder string) (list []string, err error) {
	files := token.NewFileSet()
	err = filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || strings.HasSuffix(name, "test") || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_templ.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec, *ast.Field:
				return false // paths and tags
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && sentence(text) {
					at := files.Position(n.Pos())
					rel, _ := filepath.Rel(root, at.Filename)
					list = append(list, fmt.Sprintf("%s:%d: %s", rel, at.Line, strings.ReplaceAll(text, "\n", "\\n")))
				}
			}
			return true
		})
		return nil
	})
	return list, err
}

var (
	words = regexp.MustCompile(`[a-z]{2,} [a-z%]`)
	other = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP) |\(\?[is]|<[a-z]+>`) // SQL, patterns, markup
)

// sentence says whether a text is one that people read: a few words, and no code.
func sentence(text string) bool { return words.MatchString(text) && !other.MatchString(text) }
