// Command bench compares what a server costs when it is written with this project, with go-sdk, with
// mcp-go, and by hand (the floor, which does only what any server must and checks nothing). It prints
// one Markdown table.
//
//	go run .                                       # all rows, about ten minutes, on Linux
//	go run . -rows 'stdio: (add|search)'           # the rows that match
//	go run . -before ../../../before/internal/bench # another checkout of this project in a column of its own
//
// Each server is a child process, and the kernel reports its CPU time. The servers take turns within
// each round, so other load on the machine affects all of them. A figure is the median of the rounds,
// and a ratio is the median of the ratios of each round to the floor.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"time"
)

type bench struct {
	rounds  int
	slice   time.Duration
	names   []string          // the servers, in the order of the columns
	before  string            // the folder of this program in another checkout
	dir     string            // for the programs that are built
	running map[string]*child // the servers that run until the end
	rows    []*row
}

// A row is one figure of every server.
type row struct {
	group, name, unit string

	mean    bool // the row counts in the geometric mean of its group
	once    bool // the figure does not vary, so one round is enough
	measure func(who string) (float64, error)
	figures map[string][]float64 // for each server one figure per round
}

func (r *row) key() string { return r.group + ": " + r.name }

func main() {
	log.SetFlags(0)
	b := bench{names: []string{"floor", "mcpkit", "go-sdk", "mcp-go"}, running: map[string]*child{}}
	flag.IntVar(&b.rounds, "rounds", 5, "number of rounds")
	flag.DurationVar(&b.slice, "slice", 400*time.Millisecond, "time of one measurement")
	flag.StringVar(&b.before, "before", "", "the folder of this program in another checkout, to measure, too")
	rows := flag.String("rows", "", "measure the rows that match this regular expression, such as 'stdio: add'")
	serve := flag.String("serve", "", "for the children of this program: serve with this SDK")
	over := flag.String("over", "stdio", "for the children of this program: stdio, http or memory")
	tools := flag.Int("tools", len(jobs)-1, "for the children of this program: the number of tools")
	flag.Parse()
	var err error
	if *serve != "" {
		err = beServer(*serve, *over, *tools)
	} else {
		err = b.run(*rows)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (b *bench) run(rows string) error {
	pattern, err := regexp.Compile(rows)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	defer func() {
		for _, s := range b.running {
			s.stop()
		}
	}()
	if b.before != "" {
		b.names = append(b.names, "before")
	}
	b.plan()
	b.rows = slices.DeleteFunc(b.rows, func(r *row) bool { return !pattern.MatchString(r.key()) })
	for round := range b.rounds {
		for _, r := range b.rows {
			b.measure(r, round)
		}
	}
	fmt.Print(b.table())
	return nil
}

// measure adds a figure of each server to r. Each round begins with another server.
func (b *bench) measure(r *row, round int) {
	if r.once && round > 0 {
		return
	}
	for i := range b.names {
		who := b.names[(i+round)%len(b.names)]
		if round > 0 && len(r.figures[who]) == 0 {
			continue // it failed in the first round
		}
		v, err := r.measure(who)
		if err != nil {
			log.Printf("%s, %s: %v", r.key(), who, err)
			continue
		}
		if r.figures == nil {
			r.figures = map[string][]float64{}
		}
		r.figures[who] = append(r.figures[who], v)
	}
}
