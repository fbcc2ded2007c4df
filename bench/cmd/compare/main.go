// Command compare measures the CPU time that one request costs the server, for the servers of this
// project, of other SDKs and of a minimal implementation, the floor.
//
// Each server runs in two child processes, one for HTTP and one for stdio. The kernel reports their
// CPU time. The servers take turns within each round, so that other load on the machine affects all
// of them, and the figure is the median of the rounds. The benchmark uses loopback only, tests one
// server at a time, and takes a few minutes.
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

var serverNames = []string{"floor", "mcpkit", "gosdk", "mcpgo"}

var (
	profiles string
	binaries = map[string]string{} // the programs that were built earlier, by name
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

// A cell is one measurement of every server.
type cell struct {
	setting
	job     load.Job
	callers int
	cpu     map[string][]time.Duration // per request, one for each round
	failed  map[string]error
}

func main() {
	rounds := flag.Int("rounds", 3, "number of rounds")
	slice := flag.Duration("slice", 400*time.Millisecond, "time of one measurement")
	only := flag.String("only", "", "servers, separated by commas; the floor is always included; NAME=PATH is a program built earlier")
	jobs := flag.String("jobs", "", "jobs, separated by commas: add, search, ...")
	bind := flag.String("setting", "", "settings whose name contains this")
	flag.StringVar(&profiles, "profiles", "", "a directory for CPU profiles of the servers: NAME-http.prof, NAME-stdio.prof")
	flag.Parse()
	log.SetFlags(0)
	if *only != "" {
		serverNames = []string{"floor"}
		for item := range strings.SplitSeq(*only, ",") {
			name, path, _ := strings.Cut(item, "=")
			binaries[name] = path
			if name != "floor" {
				serverNames = append(serverNames, name)
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
	for _, name := range serverNames {
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
			for i := range serverNames {
				name := serverNames[(i+round)%len(serverNames)]
				c.measure(servers[name], slice)
			}
		}
	}
	report(cells)
	fmt.Printf("\n%d rounds of %v a cell, %v in all. Peak memory:", rounds, slice, time.Since(began).Round(time.Second))
	for _, name := range serverNames {
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

// measure takes one measurement of s.
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

// report prints a table for each setting, with the figures and their ratios to the floor.
func report(cells []*cell) {
	last := ""
	logs := map[string][]float64{}
	mean := func() {
		if last == "" {
			return
		}
		fmt.Printf("%-16s", "geometric mean")
		for _, name := range serverNames {
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
			for _, name := range serverNames {
				fmt.Printf("%20s", name)
			}
			fmt.Println()
		}
		fmt.Printf("%-16s", fmt.Sprintf("%s x%d", c.job.Name, c.callers))
		floor := median(c.cpu["floor"])
		for _, name := range serverNames {
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
