// Command clients measures the CPU time that one call costs the client, for the clients of this
// project, of other SDKs and of a minimal implementation, the floor.
//
// All clients call the same server, the floor server, which runs in its own process. Each client is
// a process, too, and measures its own CPU time during the calls. The clients take turns within
// each round, and the figure is the median of the rounds.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
)

// A setting is one transport and version.
type setting struct {
	name   string
	path   string // the path of the URL; "" for stdio
	modern bool
}

var settings = []setting{
	{name: "stdio 2025-11-25"},
	{name: "stdio 2026-07-28", modern: true},
	{name: "HTTP 2025-11-25, JSON", path: "/mcp"},
	{name: "HTTP 2026-07-28, JSON", path: "/mcp", modern: true},
	{name: "HTTP 2025-11-25, SSE", path: "/sse"},
	{name: "HTTP 2026-07-28, SSE", path: "/sse", modern: true},
}

// A cell is one measurement of every client.
type cell struct {
	job     string
	callers int
	figures map[string][]calls.Figure // one for each round
	failed  map[string]error
}

func main() {
	log.SetFlags(0)
	var b bench
	flag.IntVar(&b.rounds, "rounds", 3, "number of rounds")
	flag.DurationVar(&b.slice, "slice", 400*time.Millisecond, "time of one measurement")
	only := flag.String("only", "wire,floor,mcpkit,gosdk,mcpgo", "clients, separated by commas; NAME=PATH is a program built earlier")
	flag.StringVar(&b.jobs, "jobs", "", "jobs, separated by commas: add, search, ...")
	flag.StringVar(&b.bind, "setting", "", "settings whose name contains this")
	flag.StringVar(&b.profiles, "profiles", "", "a directory for CPU profiles of the clients: NAME.prof, of the last setting")
	flag.BoolVar(&b.stock, "stock", false, "use the default HTTP client of each library, which may keep too few connections")
	flag.Parse()
	if err := b.run(*only); err != nil {
		log.Fatal(err)
	}
}

type bench struct {
	rounds     int
	slice      time.Duration
	jobs, bind string
	profiles   string
	stock      bool

	names []string
	paths map[string]string
	floor string // the server program
	addr  string // the address of the HTTP server
}

func (b *bench) run(only string) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if b.floor, err = build(dir, "server-floor"); err != nil {
		return err
	}
	b.paths = map[string]string{}
	for item := range strings.SplitSeq(only, ",") {
		name, path, _ := strings.Cut(item, "=")
		if path == "" {
			if path, err = build(dir, "client-"+name); err != nil {
				return err
			}
		}
		b.names, b.paths[name] = append(b.names, name), path
	}
	server, err := start(b.floor, "-http")
	if err != nil {
		return err
	}
	defer server.stop()
	line, err := server.out.ReadString('\n')
	if err != nil {
		return err
	}
	b.addr = strings.TrimSpace(line)
	for _, s := range settings {
		if !strings.Contains(s.name, b.bind) {
			continue
		}
		if err := b.measure(s); err != nil {
			return err
		}
	}
	return nil
}

func build(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/mcpkit/mcpkit-go/internal/bench/cmd/"+name)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s: %w (run in bench/)", name, err)
	}
	return path, nil
}

// A process is a child process that ends with its standard input.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(path string, args ...string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

func (p *process) stop() {
	_ = p.in.Close()
	// Kill the process if it does not end by itself.
	timer := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
}

// client starts a client for a setting.
func (b *bench) client(name string, s setting) (*process, error) {
	var args []string
	if s.path == "" {
		args = append(args, "-server", b.floor)
	} else {
		args = append(args, "-url", "http://"+b.addr+s.path)
	}
	if s.modern {
		args = append(args, "-modern")
	}
	if b.stock {
		args = append(args, "-stock")
	}
	if b.profiles != "" {
		args = append(args, "-cpuprofile", filepath.Join(b.profiles, name+".prof"))
	}
	return start(b.paths[name], args...)
}

func (b *bench) measure(s setting) error {
	clients := map[string]*process{}
	defer func() {
		for _, p := range clients {
			p.stop()
		}
	}()
	for _, name := range b.names {
		p, err := b.client(name, s)
		if err != nil {
			return err
		}
		clients[name] = p
	}
	names := b.names
	if s.path == "" { // on stdio, wire is the same as floor
		b.names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "wire" })
		defer func() { b.names = names }()
	}
	cells := b.plan()
	for round := range b.rounds {
		for _, c := range cells {
			for i := range b.names {
				name := b.names[(i+round)%len(b.names)]
				c.measure(s, name, clients[name], b.slice)
			}
		}
	}
	b.report(s, cells)
	return nil
}

func (b *bench) plan() []*cell {
	var cells []*cell
	for _, job := range calls.Names {
		if b.jobs != "" && !slices.Contains(strings.Split(b.jobs, ","), job) {
			continue
		}
		callers := []int{1}
		switch job {
		case "add":
			callers = []int{1, 16, 64}
		case "echo 100", "search":
			callers = []int{1, 16}
		}
		for _, n := range callers {
			cells = append(cells, &cell{job: job, callers: n, figures: map[string][]calls.Figure{}, failed: map[string]error{}})
		}
	}
	return cells
}

// measure takes one measurement of a client.
func (c *cell) measure(s setting, name string, p *process, slice time.Duration) {
	if c.failed[name] != nil {
		return
	}
	err := calls.WriteOrder(p.in, c.job, c.callers, slice)
	var f calls.Figure
	if err == nil {
		f, err = calls.ReadFigure(p.out)
	}
	if err != nil {
		c.failed[name] = err
		log.Printf("%s, %s, %s: %v", s.name, c.job, name, err)
		return
	}
	c.figures[name] = append(c.figures[name], f)
}

// cpu returns the median and the minimum of the rounds, in microseconds.
func cpu(figures []calls.Figure) (median, least float64) {
	if len(figures) == 0 {
		return math.NaN(), math.NaN()
	}
	all := make([]float64, len(figures))
	for i, f := range figures {
		all[i] = float64(f.CPU) / float64(time.Microsecond)
	}
	slices.Sort(all)
	return all[len(all)/2], all[0]
}

// report prints a table: the median, the minimum, the ratio to mcpkit and the allocations.
func (b *bench) report(s setting, cells []*cell) {
	fmt.Printf("\n%s: client CPU per call in µs: median (minimum), ratio to mcpkit, allocations\n%-16s", s.name, "")
	for _, name := range b.names {
		fmt.Printf("%30s", name)
	}
	fmt.Println()
	logs := map[string][]float64{}
	for _, c := range cells {
		fmt.Printf("%-16s", fmt.Sprintf("%s x%d", c.job, c.callers))
		ours, _ := cpu(c.figures["mcpkit"])
		for _, name := range b.names {
			v, least := cpu(c.figures[name])
			if math.IsNaN(v) {
				fmt.Printf("%30s", "failed")
				continue
			}
			logs[name] = append(logs[name], math.Log(v/ours))
			fmt.Printf("%30s", fmt.Sprintf("%.1f (%.1f) %.2fx %.0f", v, least, v/ours, c.figures[name][0].Allocs))
		}
		fmt.Println()
	}
	fmt.Printf("%-16s", "geometric mean")
	for _, name := range b.names {
		sum := 0.0
		for _, l := range logs[name] {
			sum += l
		}
		fmt.Printf("%30s", fmt.Sprintf("%.2fx", math.Exp(sum/float64(len(logs[name])))))
	}
	fmt.Println()
}
