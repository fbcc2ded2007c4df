// Command compare measures what requests, streams and sessions cost this project, other SDKs and the
// floor, which is minimal code written by hand. It prints a table, compares it with targets and draws
// how cost grows.
//
// Servers run in child processes, or in this one, and the kernel reports their CPU time. They take
// turns within each round, so that other load on the machine affects all of them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/answer"
)

var servers = answer.Names

type bench struct {
	rounds          int
	slice           time.Duration
	profiles, dir   string
	binaries        map[string]string // the programs that were built earlier, by name
	servers         map[string]*process
	answerers       map[string]answer.Func
	rows            []*row
	targets, page   string
	update, isCheck bool
	gate            float64
	plots           string
}

func main() {
	log.SetFlags(0)
	b := bench{binaries: map[string]string{}, servers: map[string]*process{}, answerers: map[string]answer.Func{}}
	flag.IntVar(&b.rounds, "rounds", 3, "number of rounds")
	flag.DurationVar(&b.slice, "slice", 400*time.Millisecond, "time of one measurement")
	only := flag.String("only", "", "servers, separated by commas; the floor is always included; NAME=PATH is a program built earlier")
	rows := flag.String("rows", "", "measure rows that match this regular expression, such as 'stdio: add'")
	flag.StringVar(&b.profiles, "profiles", "", "a directory for CPU profiles of the servers")
	flag.StringVar(&b.targets, "targets", "targets.txt", "the file of targets")
	flag.BoolVar(&b.isCheck, "check", false, "compare with the targets; exit with 2 if one that was reached is missed")
	flag.Float64Var(&b.gate, "gate", 0, "measure the rows of the gate, and exit with 2 if a ratio is more than this part above the one in the targets, three times in a row")
	flag.BoolVar(&b.update, "update", false, "write what was measured into the file of targets")
	flag.StringVar(&b.page, "page", "", "write the table into this page")
	flag.StringVar(&b.plots, "plots", "", "write plots of the growth into this directory")
	registering := flag.String("register", "", "add 1000 tools to this server and print the cost of one")
	flag.Parse()
	if *registering != "" {
		if err := register(*registering); err != nil {
			log.Fatal(err)
		}
		return
	}
	if *only != "" {
		servers = []string{"floor"}
		for item := range strings.SplitSeq(*only, ",") {
			name, path, _ := strings.Cut(item, "=")
			b.binaries[name] = path
			if name != "floor" {
				servers = append(servers, name)
			}
		}
	}
	err := b.run(*rows)
	if errors.Is(err, errMissed) {
		log.Print(err)
		os.Exit(2)
	}
	if err != nil {
		log.Fatal(err)
	}
}

var errMissed = errors.New("a target is missed")

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
		for _, p := range b.servers {
			p.stop()
		}
	}()
	if b.gate > 0 {
		b.planGate()
	} else {
		b.plan()
	}
	b.rows = slices.DeleteFunc(b.rows, func(r *row) bool { return !pattern.MatchString(r.key()) })
	if b.gate > 0 {
		return b.guard()
	}
	b.measure(b.rows)
	table := b.table()
	fmt.Print(table)
	if b.page != "" {
		if err := replace(b.page, "table", table); err != nil {
			return err
		}
	}
	if b.plots != "" {
		if err := b.plot(); err != nil {
			return err
		}
	}
	if b.update {
		return b.write()
	}
	if b.isCheck {
		return b.check()
	}
	return nil
}

// measure adds a figure of each server to each row in each round.
func (b *bench) measure(rows []*row) {
	for round := range b.rounds {
		for _, r := range rows {
			if r.figures == nil {
				r.figures = map[string][]float64{}
			}
			names := r.names()
			for i := range names {
				who := names[(i+round)%len(names)]
				if !slices.Contains(servers, who) || r.once && round > 0 || r.figures[who] == nil && round > 0 {
					continue
				}
				v, err := r.f(who)
				if err != nil {
					log.Printf("%s, %s: %v", r.key(), who, err)
					continue
				}
				r.figures[who] = append(r.figures[who], v)
			}
		}
	}
}

// replace replaces the part of a page between two comments.
func replace(path, name, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->\n"
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no lines %q and %q", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+text+end+after), 0o644)
}
