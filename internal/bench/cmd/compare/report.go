package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	return s[len(s)/2]
}

// ratios are those of a server to the floor, one for each round.
func (r *row) ratios(who string) (all []float64) {
	floor := r.figures["floor"]
	for i, v := range r.figures[who] {
		if i < len(floor) && floor[i] >= 0.01 { // hardly any allocations are no measure
			all = append(all, v/floor[i])
		}
	}
	return all
}

// number writes three digits.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// table returns Markdown: for each figure the median, and the least in brackets, and the ratio to the
// floor.
func (b *bench) table() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Measured on %s: %s, %d cores, %s/%s, %s, load average %s; %d rounds of %v.\n",
		time.Now().Format(time.DateOnly), first("/proc/cpuinfo", "model name"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), first("/proc/loadavg", ""), b.rounds, b.slice)
	last := ""
	for i, r := range b.rows {
		if r.group == "growth" {
			continue
		}
		if r.group != last {
			last = r.group
			fmt.Fprintf(&w, "\n**%s**\n\n| | %s | spread |\n|---|%s---|\n", strings.ToUpper(last[:1])+last[1:], strings.Join(servers, " | "), strings.Repeat("---:|", len(servers)))
		}
		fmt.Fprintf(&w, "| %s |", strings.TrimSuffix(r.name+", "+r.unit, ", "))
		for _, who := range servers {
			v := r.figures[who]
			if len(v) == 0 {
				w.WriteString(" |")
				continue
			}
			fmt.Fprintf(&w, " %s", number(median(v)))
			if least := slices.Min(v); len(v) > 1 && number(least) != number(median(v)) {
				fmt.Fprintf(&w, " (%s)", number(least))
			}
			if ratios := r.ratios(who); who != "floor" && len(ratios) > 0 {
				fmt.Fprintf(&w, " %sx", number(median(ratios)))
			}
			w.WriteString(" |")
		}
		if v := r.ratios("mcpkit"); len(v) > 1 {
			fmt.Fprintf(&w, " %sx to %sx |\n", number(slices.Min(v)), number(slices.Max(v)))
		} else if v := r.figures["mcpkit"]; len(v) > 1 {
			fmt.Fprintf(&w, " %s to %s |\n", number(slices.Min(v)), number(slices.Max(v)))
		} else {
			w.WriteString(" |\n")
		}
		if i+1 == len(b.rows) || b.rows[i+1].group != last {
			b.mean(&w, last)
		}
	}
	return w.String()
}

// mean writes the geometric mean of a group, if it has one.
func (b *bench) mean(w *strings.Builder, group string) {
	if math.IsNaN(b.geometric(group, "floor")) {
		return
	}
	w.WriteString("| **geometric mean** | 1x |")
	for _, who := range servers[1:] {
		fmt.Fprintf(w, " **%sx** |", number(b.geometric(group, who)))
	}
	w.WriteString(" |\n")
}

func (b *bench) geometric(group, who string) float64 {
	sum, n := 0.0, 0.0
	for _, r := range b.rows {
		if r.group == group && r.mean && len(r.ratios(who)) > 0 {
			sum += math.Log(median(r.ratios(who)))
			n++
		}
	}
	return math.Exp(sum / n)
}

// first returns the value of the first line of a file with the name, or its first word.
func first(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if name == "" {
			word, _, _ := strings.Cut(in.Text(), " ")
			return word
		}
		if key, value, _ := strings.Cut(in.Text(), ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// A target is one line of the file: a row, its goal and what was measured. A figure with x is a ratio
// to the floor. Without a goal, the line is there for the gate.
type target struct {
	row, goal, measured string
}

func (b *bench) read() (all []target, comment string, err error) {
	text, err := os.ReadFile(b.targets)
	if err != nil {
		return nil, "", err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			comment += line
			continue
		}
		part := strings.Split(line, "|")
		if len(part) != 3 {
			return nil, "", fmt.Errorf("%s: %q does not have three parts", b.targets, line)
		}
		all = append(all, target{strings.TrimSpace(part[0]), strings.TrimSpace(part[1]), strings.TrimSpace(part[2])})
	}
	return all, comment, nil
}

func value(text string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "x"), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// figure returns what was measured for a target, or NaN.
func (b *bench) figure(t target) float64 {
	group, name, _ := strings.Cut(t.row, ": ")
	if name == "geometric mean" {
		return b.geometric(group, "mcpkit")
	}
	if group == "slope" {
		return b.slope(name)
	}
	for _, r := range b.rows {
		if r.key() == t.row {
			if r.group == gateGroup {
				return r.low("mcpkit") / r.low("floor")
			}
			if strings.Contains(t.goal+t.measured, "x") {
				return median(r.ratios("mcpkit"))
			}
			return median(r.figures["mcpkit"])
		}
	}
	return math.NaN()
}

func (b *bench) write() error {
	all, comment, err := b.read()
	if err != nil {
		return err
	}
	verdicts := "| row | goal | measured | |\n|---|---:|---:|---|\n"
	for _, t := range all {
		if v := b.figure(t); !math.IsNaN(v) && !math.IsInf(v, 0) {
			unit := ""
			if strings.Contains(t.goal+t.measured, "x") {
				unit = "x"
			}
			t.measured = number(v) + unit
		}
		comment += fmt.Sprintf("%s | %s | %s\n", t.row, t.goal, t.measured)
		if t.goal != "-" {
			verdict := "not reached"
			if value(t.measured) <= value(t.goal)*noise {
				verdict = "reached"
			}
			verdicts += fmt.Sprintf("| %s | %s | %s | %s |\n", t.row, t.goal, t.measured, verdict)
		}
	}
	if b.page != "" {
		if err := replace(b.page, "verdicts", verdicts); err != nil {
			return err
		}
	}
	return os.WriteFile(b.targets, []byte(comment), 0o644)
}

// noise is how much a figure may be above its goal, since the machine has other load.
const noise = 1.1

// check prints a verdict for each target.
func (b *bench) check() error {
	all, _, err := b.read()
	if err != nil {
		return err
	}
	failed := 0
	fmt.Printf("\n%-60s %8s %8s %8s\n", "target", "goal", "before", "now")
	for _, t := range all {
		if t.goal == "-" {
			continue
		}
		now, goal, before := b.figure(t), value(t.goal), value(t.measured)
		verdict := "reached"
		switch {
		case math.IsNaN(now):
			verdict = "not measured"
		case now > goal*noise && before <= goal*noise:
			verdict = "MISSED: it was reached before"
			failed++
		case now > goal*noise:
			verdict = "not reached yet"
		}
		fmt.Printf("%-60s %8s %8s %8s  %s\n", t.row, t.goal, t.measured, number(now), verdict)
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d", errMissed, failed)
	}
	return nil
}

// points returns what was measured for a curve.
func (b *bench) points(c curve) (points [][2]float64) {
	for _, n := range c.sizes {
		for _, r := range b.rows {
			if r.key() == fmt.Sprintf("growth: %s, %d %s", c.name, n, c.x) && len(r.figures["mcpkit"]) > 0 {
				points = append(points, [2]float64{float64(n), slices.Min(r.figures["mcpkit"])})
			}
		}
	}
	return points
}

// slope returns the slope of a curve in a plot with logarithmic axes, by least squares. 1 is linear,
// and 0 is constant. The name may begin with "each", which asks for the cost of one more, in µs.
func (b *bench) slope(name string) float64 {
	each := strings.HasPrefix(name, "each ")
	for _, c := range b.curves() {
		if strings.TrimPrefix(name, "each ") != c.name {
			continue
		}
		points := b.points(c)
		if len(points) < 2 {
			return math.NaN()
		}
		if each {
			last, first := points[len(points)-1], points[0]
			return (last[1] - first[1]) / (last[0] - first[0])
		}
		var n, sx, sy, sxx, sxy float64
		for _, p := range points {
			x, y := math.Log(p[0]), math.Log(p[1])
			n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
		}
		return (n*sxy - sx*sy) / (n*sxx - sx*sx)
	}
	return math.NaN()
}

// plot writes an SVG for each curve, with logarithmic axes.
func (b *bench) plot() error {
	for _, c := range b.curves() {
		points := b.points(c)
		if len(points) < 2 {
			continue
		}
		name := "growth-" + strings.ReplaceAll(c.name, " ", "-") + ".svg"
		if err := os.WriteFile(filepath.Join(b.plots, name), []byte(svg(c, points)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func svg(c curve, points [][2]float64) string {
	const width, height, left, bottom, top, right = 480, 280, 60, 45, 30, 20
	low, high := points[0], points[0]
	for _, p := range points {
		low = [2]float64{min(low[0], p[0]), min(low[1], p[1])}
		high = [2]float64{max(high[0], p[0]), max(high[1], p[1])}
	}
	low[1], high[1] = math.Pow(10, math.Floor(math.Log10(low[1]))), math.Pow(10, math.Ceil(math.Log10(high[1])+0.01))
	at := func(p [2]float64) (x, y float64) {
		f := func(i int) float64 { return math.Log(p[i]/low[i]) / math.Log(high[i]/low[i]) }
		return left + f(0)*(width-left-right), height - bottom - f(1)*(height-bottom-top)
	}
	var w, line strings.Builder
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&w, `<rect width="%d" height="%d" fill="#fff"/><text x="%d" y="18">CPU time of %s, µs</text>`+"\n", width, height, left, c.name)
	for v := low[1]; v <= high[1]*1.01; v *= 10 {
		_, y := at([2]float64{low[0], v})
		fmt.Fprintf(&w, `<path d="M%d %.1fH%d" stroke="#ccc"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n", left, y, width-right, left-6, y+4, v)
	}
	for i, p := range points {
		x, y := at(p)
		fmt.Fprintf(&w, `<circle cx="%.1f" cy="%.1f" r="3" fill="#06c"/><text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", x, y, x, height-bottom+18, p[0])
		fmt.Fprintf(&line, "%c%.1f %.1f", "ML"[min(i, 1)], x, y)
	}
	fmt.Fprintf(&w, `<path d="%s" fill="none" stroke="#06c"/><text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n</svg>\n", line.String(), (left+width-right)/2, height-8, c.x)
	return w.String()
}
