package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// table returns Markdown: for each figure the median, and its ratio to the floor.
func (b *bench) table() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Measured on %s: %s, %d cores, %s/%s, %s, load average %s; %d rounds of %v.\n\n",
		time.Now().Format(time.DateOnly), processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(),
		load(), b.rounds, b.slice)
	fmt.Fprintf(&w, "| | %s |\n|---|%s\n", strings.Join(b.names, " | "), strings.Repeat("---:|", len(b.names)))
	for i, r := range b.rows {
		fmt.Fprintf(&w, "| %s |", strings.TrimSuffix(r.key()+", "+r.unit, ", "))
		for _, who := range b.names {
			fmt.Fprintf(&w, " %s", figure(median(r.figures[who])))
			if ratios := r.ratios(who); who != "floor" && len(ratios) > 0 {
				fmt.Fprintf(&w, " (%sx)", figure(median(ratios)))
			}
			w.WriteString(" |")
		}
		w.WriteString("\n")
		if r.mean && (i+1 == len(b.rows) || !b.rows[i+1].mean || b.rows[i+1].group != r.group) {
			fmt.Fprintf(&w, "| **%s: geometric mean** |", r.group)
			for _, who := range b.names {
				fmt.Fprintf(&w, " **%sx** |", figure(b.geometric(r.group, who)))
			}
			w.WriteString("\n")
		}
	}
	return w.String()
}

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
		if i < len(floor) && floor[i] > 0 {
			all = append(all, v/floor[i])
		}
	}
	return all
}

func (b *bench) geometric(group, who string) float64 {
	sum, n := 0.0, 0.0
	for _, r := range b.rows {
		if ratios := r.ratios(who); r.group == group && r.mean && len(ratios) > 0 {
			sum += math.Log(median(ratios))
			n++
		}
	}
	return math.Exp(sum / n)
}

// figure writes three digits.
func figure(v float64) string {
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

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if key, value, _ := strings.Cut(in.Text(), ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// load returns the load average of the last minute.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
