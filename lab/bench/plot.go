package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Chart is one set of bars.
type Chart struct {
	Title string
	Bars  []Bar
}

// Bar is a value with what stands beside it. Values are greater than 0.
type Bar struct {
	Name, Shown string
	Value       float64
	Ours        bool
}

// Plot draws charts below each other as SVG, the lengths of bars on a scale of
// logarithms: what is measured differs by powers of ten.
func Plot(charts []Chart) []byte {
	const width, left, right, step, head = 760, 230, 120, 24, 40
	height := 10
	for _, c := range charts {
		height += head + step*len(c.Bars) + 14
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	y := 10
	for _, c := range charts {
		low, high := math.Inf(1), math.Inf(-1)
		for _, bar := range c.Bars {
			low, high = min(low, bar.Value), max(high, bar.Value)
		}
		low = math.Floor(math.Log10(low) - 0.3) // the shortest bar is seen
		scale := float64(width-left-right) / max(math.Log10(high)-low, 1e-9)
		fmt.Fprintf(&b, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y+22, html.EscapeString(c.Title))
		y += head
		for _, bar := range c.Bars {
			color := "#9aa5b1"
			if bar.Ours {
				color = "#1f6feb"
			}
			long := scale * (math.Log10(bar.Value) - low)
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+14, html.EscapeString(bar.Name))
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, left, y, long, step-6, color)
			fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", float64(left)+long+6, y+14, html.EscapeString(bar.Shown))
			y += step
		}
		y += 14
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
