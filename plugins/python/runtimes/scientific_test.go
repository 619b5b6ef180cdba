package runtimes

import (
	"os"
	"strings"
	"testing"
)

// TestScientific runs the packages of the scientific runtime. Compiling it takes one
// to two minutes and 2.5 GB the first time on a machine, so it runs only where
// OPENSKILL_TEST_SCIENTIFIC is set and the runtime is installed.
func TestScientific(t *testing.T) {
	if os.Getenv("OPENSKILL_TEST_SCIENTIFIC") == "" {
		t.Skip("OPENSKILL_TEST_SCIENTIFIC is not set")
	}
	p := open(t, installed(t, Scientific))
	for _, c := range []struct{ name, program, want string }{
		{"numpy", "import numpy as np; print(np.linalg.solve(np.array([[3., 1], [1, 2]]), np.array([9., 8])))", "[2. 3.]"},
		{"pandas", "import pandas as pd; print(pd.DataFrame({'k': list('aab'), 'v': [1, 2, 4]}).groupby('k').v.sum().to_dict())", "{'a': 3, 'b': 4}"},
		{"scipy", "from scipy import optimize; print(round(optimize.brentq(lambda x: x*x - 2, 0, 2), 6))", "1.414214"},
		{"scikit-learn", "from sklearn.linear_model import LinearRegression as L; print(L().fit([[0], [1], [2]], [1, 3, 5]).predict([[3]]).round(6))", "[7.]"},
		{"matplotlib", "import io, matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as p; p.plot([1, 3, 2]); b = io.BytesIO(); p.savefig(b, dpi=50); " +
			"from PIL import Image; i = Image.open(b); print(i.format, i.size, len(set(i.convert('L').tobytes())) > 10)", "PNG (320, 240) True"},
		{"lxml", "from lxml import etree; print(etree.fromstring('<a><b>x</b></a>').xpath('//b/text()'))", "['x']"},
		{"sympy", "import sympy as s; x = s.symbols('x'); print(s.integrate(x**2, x))", "x**3/3"},
		{"reportlab", "import io; from reportlab.pdfgen.canvas import Canvas; b = io.BytesIO(); c = Canvas(b); c.drawString(9, 9, 'x'); c.save(); print(b.getvalue()[:5])", "b'%PDF-'"},
		{"a C++ exception", "import numpy as np\nfrom scipy.spatial import cKDTree\ntry: cKDTree(np.array([[float('nan')]]))\nexcept ValueError as e: print('ValueError')", "ValueError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := p.run(t, c.program); got != c.want {
				t.Errorf("%s\nwant:\n%s", got, c.want)
			}
		})
	}
	t.Run("every package", func(t *testing.T) {
		var modules []string
		for _, pkg := range Packages() {
			for _, m := range pkg.Imports {
				if m != "isympy" { // a program: importing it begins a session
					modules = append(modules, m)
				}
			}
		}
		got := p.run(t, "import warnings; warnings.simplefilter('ignore')\nfor m in '"+strings.Join(modules, " ")+"'.split(): __import__(m)\nprint('all')")
		if got != "all" {
			t.Error(got)
		}
	})
}
