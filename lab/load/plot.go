package load

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"text/template"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The area of the curve in the picture, in its own units.
const (
	plotLeft, plotTop, plotWidth, plotHeight = 80.0, 50.0, 640.0, 300.0
)

// plotColors are seen on white and on black.
var plotColors = []string{"#2f81f7", "#d97706", "#16a34a", "#db2777", "#8b5cf6", "#0d9488", "#dc2626", "#65a30d"}

// pixel is a number of the picture.
type pixel float64

// String implements fmt.Stringer.
func (p pixel) String() string { return fmt.Sprintf("%.1f", float64(p)) }

type plotTick struct {
	At   pixel
	Text string
}

type plotLine struct {
	Name, Color, Points string
	At                  pixel // of its name
}

var plotTemplate = template.Must(template.New("plot").Funcs(template.FuncMap{"xml": escape}).Parse(
	`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 420" font-family="sans-serif" font-size="12" role="img">
<title>{{xml .Title}}</title>
<style>
svg { color: #1f2328; background: #fff }
@media (prefers-color-scheme: dark) { svg { color: #e6edf3; background: #0d1117 } }
text { fill: currentColor }
.grid { stroke: currentColor; stroke-opacity: 0.2 }
.line { fill: none; stroke-width: 2 }
</style>
<text x="80" y="24" font-weight="bold">{{xml .Title}}</text>
{{range .X}}<line class="grid" x1="{{.At}}" x2="{{.At}}" y1="50" y2="350"/><text x="{{.At}}" y="368" text-anchor="middle">{{xml .Text}}</text>
{{end}}{{range .Y}}<line class="grid" x1="80" x2="720" y1="{{.At}}" y2="{{.At}}"/><text x="72" y="{{.At}}" text-anchor="end" dominant-baseline="middle">{{xml .Text}}</text>
{{end}}{{range .Lines}}<polyline class="line" stroke="{{.Color}}" points="{{.Points}}"/><rect x="96" y="{{.At}}" width="12" height="4" fill="{{.Color}}"/><text x="114" y="{{.At}}" dominant-baseline="middle">{{xml .Name}}</text>
{{end}}<text x="400" y="400" text-anchor="middle">percentile of requests, by 1 / (1 - p)</text>
</svg>
`))

// escape is text within XML; what XML cannot hold becomes U+FFFD.
func escape(s string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(s))
	return b.String(), err
}

// Plot draws the latency by percentile as SVG, on a logarithmic scale of 1/(1-p): 99,
// 99.9 and 99.99 % are as far from each other. Skills that were called beside others have
// curves of their own.
func (r *Report) Plot(title string) ([]byte, error) {
	decades := math.Max(1, math.Ceil(math.Log10(float64(max(r.All.Latency.TotalCount(), 10)))))
	high := niceAbove(float64(max(r.All.Latency.Max(), 1)))
	x := func(p float64) pixel { // of the share p
		return pixel(plotLeft + plotWidth*min(-math.Log10(1-p)/decades, 1))
	}
	y := func(us float64) pixel { return pixel(plotTop + plotHeight*(1-us/high)) }
	var data struct {
		Title string
		X, Y  []plotTick
		Lines []plotLine
	}
	data.Title = title
	data.X = append(data.X, plotTick{x(0), "0"})
	for d := 1.0; d <= decades; d++ {
		digits := max(int(d)-2, 0)
		data.X = append(data.X, plotTick{x(1 - math.Pow(10, -d)), fmt.Sprintf("%.*f %%", digits, 100*(1-math.Pow(10, -d)))})
	}
	const steps = 4
	for i := range steps + 1 {
		us := high * float64(i) / steps
		data.Y = append(data.Y, plotTick{y(us), time.Duration(us * float64(time.Microsecond)).String()})
	}
	add := func(name string, h *hdrhistogram.Histogram) {
		if h.TotalCount() == 0 {
			return
		}
		var points []string
		last := 1 - 1/float64(h.TotalCount()) // beyond it there is one request
		const parts = 40                      // of a decade
		for i := 0; ; i++ {
			p := min(1-math.Pow(10, -float64(i)/parts), last)
			points = append(points, x(p).String()+","+y(math.Min(float64(h.ValueAtPercentile(100*p)), high)).String())
			if p >= last {
				break
			}
		}
		points = append(points, x(last).String()+","+y(math.Min(float64(h.Max()), high)).String())
		n := len(data.Lines)
		data.Lines = append(data.Lines, plotLine{name, plotColors[n%len(plotColors)], strings.Join(points, " "), pixel(66 + 16*n)})
	}
	add("all", r.All.Latency)
	if len(r.Skills) > 1 {
		for _, s := range r.Skills[:min(len(r.Skills), len(plotColors)-1)] {
			add(s.ID, s.Latency)
		}
	}
	var b strings.Builder
	if err := plotTemplate.Execute(&b, data); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

// niceAbove is the next 1, 2 or 5 times a power of ten.
func niceAbove(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v {
			return m * power
		}
	}
	return 10 * power
}
