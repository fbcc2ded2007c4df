// Command compare measures this project beside its peers and the floor: how much CPU time one
// request costs the server.
//
// Each contender is a child process, one for HTTP and one for stdio; the kernel says how long it
// ran. The contenders take turns within each round, so that what disturbs the machine disturbs all
// of them, and the figure is the median of the rounds. The load is bounded: loopback only, one
// contender at a time, a few minutes in all.
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/bench/internal/load"
)

var contenders = []string{"floor", "mcpkit", "gosdk", "mcpgo"}

var (
	profiles string
	binaries = map[string]string{} // of contenders that are not built here
)

// A setting is one transport and version.
type setting struct {
	name   string
	http   bool
	modern bool
}

var settings = []setting{
	{name: "HTTP 2025-11-25, session", http: true},
	{name: "HTTP 2026-07-28", http: true, modern: true},
	{name: "stdio"},
}

// A cell is what is measured of every contender.
type cell struct {
	setting
	job     load.Job
	callers int
	cpu     map[string][]time.Duration // per request, of each round
	failed  map[string]error
}

func main() {
	rounds := flag.Int("rounds", 3, "how often everything is measured")
	slice := flag.Duration("slice", 400*time.Millisecond, "how long one measurement takes")
	only := flag.String("only", "", "contenders, with commas between; the floor is always one; NAME=PATH is a server that was built before")
	jobs := flag.String("jobs", "", "jobs, with commas between: add, search, ...")
	bind := flag.String("setting", "", "settings whose name contains this")
	flag.StringVar(&profiles, "profiles", "", "a directory for CPU profiles of the servers: NAME-http.prof, NAME-stdio.prof")
	flag.Parse()
	log.SetFlags(0)
	if *only != "" {
		contenders = []string{"floor"}
		for item := range strings.SplitSeq(*only, ",") {
			name, path, _ := strings.Cut(item, "=")
			binaries[name] = path
			if name != "floor" {
				contenders = append(contenders, name)
			}
		}
	}
	if err := run(*rounds, *slice, *jobs, *bind); err != nil {
		log.Fatal(err)
	}
}

func run(rounds int, slice time.Duration, jobs, bind string) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	servers := map[string]*server{}
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	for _, name := range contenders {
		s, err := build(dir, name)
		if err != nil {
			return err
		}
		servers[name] = s
	}
	cells := plan(jobs, bind)
	began := time.Now()
	for round := range rounds {
		for _, c := range cells {
			for i := range contenders {
				name := contenders[(i+round)%len(contenders)]
				c.measure(servers[name], slice)
			}
		}
	}
	report(cells)
	fmt.Printf("\n%d rounds of %v a cell, %v in all. Peak memory:", rounds, slice, time.Since(began).Round(time.Second))
	for _, name := range contenders {
		fmt.Printf("  %s %s", name, servers[name].memory())
	}
	fmt.Println()
	return nil
}

func plan(jobs, bind string) []*cell {
	var cells []*cell
	for _, s := range settings {
		if !strings.Contains(s.name, bind) {
			continue
		}
		for _, job := range load.Jobs {
			if jobs != "" && !slices.Contains(strings.Split(jobs, ","), job.Name) {
				continue
			}
			for _, callers := range []int{1, 64} {
				if callers > 1 && job.Name != "add" && job.Name != "search" {
					continue
				}
				cells = append(cells, &cell{setting: s, job: job, callers: callers, cpu: map[string][]time.Duration{}, failed: map[string]error{}})
			}
		}
	}
	return cells
}

// measure takes one figure of s.
func (c *cell) measure(s *server, slice time.Duration) {
	if c.failed[s.name] != nil {
		return
	}
	cpu, err := s.measure(c, slice)
	if err != nil {
		c.failed[s.name] = err
		log.Printf("%s, %s, %s: %v", c.name, c.job.Name, s.name, err)
		return
	}
	c.cpu[s.name] = append(c.cpu[s.name], cpu)
}

func median(values []time.Duration) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return float64(values[len(values)/2]) / float64(time.Microsecond)
}

// report prints a table for each setting, the ratios to the floor beside the figures.
func report(cells []*cell) {
	last := ""
	logs := map[string][]float64{}
	mean := func() {
		if last == "" {
			return
		}
		fmt.Printf("%-16s", "geometric mean")
		for _, name := range contenders {
			sum := 0.0
			for _, l := range logs[name] {
				sum += l
			}
			fmt.Printf("%20s", fmt.Sprintf("%.2fx", math.Exp(sum/float64(len(logs[name])))))
		}
		fmt.Println()
		clear(logs)
	}
	for _, c := range cells {
		if c.name != last {
			mean()
			last = c.name
			fmt.Printf("\n%s: server CPU per request, µs\n%-16s", c.name, "")
			for _, name := range contenders {
				fmt.Printf("%20s", name)
			}
			fmt.Println()
		}
		fmt.Printf("%-16s", fmt.Sprintf("%s x%d", c.job.Name, c.callers))
		floor := median(c.cpu["floor"])
		for _, name := range contenders {
			v := median(c.cpu[name])
			if math.IsNaN(v) {
				fmt.Printf("%20s", "failed")
				continue
			}
			logs[name] = append(logs[name], math.Log(v/floor))
			fmt.Printf("%20s", fmt.Sprintf("%.1f (%.2fx)", v, v/floor))
		}
		fmt.Println()
	}
	mean()
}
