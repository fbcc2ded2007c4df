// Package calls runs the calls that every client of the benchmark makes, and measures the CPU time
// of its own process.
package calls

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/load"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/program"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

// A Client is connected and has listed the tools. Its methods are called concurrently. Each takes
// typical arguments and returns one value of the result, in the cheapest way that the library
// offers.
type Client interface {
	Add(ctx context.Context, in work.AddInput) (sum int, err error)          // from the structured content
	Search(ctx context.Context, in work.SearchInput) (lastID int, err error) // the structured content
	Echo(ctx context.Context, args map[string]any) (text string, err error)  // the text
	Blob(ctx context.Context, args map[string]any) (length int, err error)   // the text
}

// A Target is the floor server to connect to, over HTTP or as a child process.
type Target struct {
	URL    string   // "" for stdio
	Server []string // the command, for stdio
	Modern bool     // use 2026-07-28 instead of 2025-11-25

	// HTTP is the HTTP client; nil means the default of the library. It keeps one connection for
	// each caller. http.DefaultTransport keeps two, so most calls would dial.
	HTTP *http.Client
}

// Version returns the protocol version.
func (t *Target) Version() string {
	if t.Modern {
		return "2026-07-28"
	}
	return "2025-11-25"
}

// A job is a call and a check of its result.
type job func(ctx context.Context, c Client) error

var text = strings.Repeat("0123456789", 10)

// Names lists the jobs.
var Names = []string{"add", "search", "echo 100", "blob 1M"}

var jobs = map[string]job{
	"add": func(ctx context.Context, c Client) error {
		sum, err := c.Add(ctx, work.AddInput{A: 19, B: 23})
		return check(err, sum == 42)
	},
	"search": func(ctx context.Context, c Client) error {
		last, err := c.Search(ctx, work.SearchInput{
			Query: "fast servers", Limit: 10, Tags: []string{"go", "mcp"}, Filter: &work.Filter{Field: "year", Op: "gt", Value: "2024"},
		})
		return check(err, last == 1009)
	},
	"echo 100": func(ctx context.Context, c Client) error {
		back, err := c.Echo(ctx, map[string]any{"text": text})
		return check(err, back == text)
	},
	"blob 1M": func(ctx context.Context, c Client) error {
		n, err := c.Blob(ctx, map[string]any{"n": 1 << 20})
		return check(err, n == 1<<20)
	},
}

func check(err error, right bool) error {
	if err == nil && !right {
		return errors.New("the result is wrong")
	}
	return err
}

// A Figure is the cost of calls for the client.
type Figure struct {
	Calls  int
	CPU    time.Duration // per call, in all threads of the process
	Allocs float64       // per call
	Bytes  float64       // per call, allocated
}

// Main connects a client. For each line "JOB|CALLERS|DURATION" of its standard input, it makes
// calls for that duration and prints a Figure or an error. It returns when the input ends.
func Main(connect func(context.Context, *Target) (Client, error)) {
	var t Target
	server := flag.String("server", "", "the server program, for stdio")
	flag.StringVar(&t.URL, "url", "", "the URL of the server, for HTTP")
	flag.BoolVar(&t.Modern, "modern", false, "use 2026-07-28")
	stock := flag.Bool("stock", false, "use the default HTTP client of the library")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	log.SetFlags(0)
	if *server != "" {
		t.Server = []string{*server}
	}
	if !*stock {
		tr := http.DefaultTransport.(*http.Transport).Clone()
		tr.MaxIdleConnsPerHost = 100
		t.HTTP = &http.Client{Transport: tr}
	}
	c, err := connect(context.Background(), &t)
	if err != nil {
		log.Fatal(err)
	}
	defer program.ProfileTo(*profile)()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		f, err := serve(c, in.Text())
		if err != nil {
			fmt.Printf("error %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Printf("%d %d %f %f\n", f.Calls, f.CPU, f.Allocs, f.Bytes)
	}
}

// ReadFigure reads a Figure that Main printed.
func ReadFigure(r *bufio.Reader) (f Figure, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return f, err
	}
	if message, ok := strings.CutPrefix(line, "error "); ok {
		return f, errors.New(strings.TrimSpace(message))
	}
	_, err = fmt.Sscanf(line, "%d %d %f %f", &f.Calls, &f.CPU, &f.Allocs, &f.Bytes)
	return f, err
}

// WriteOrder writes a line for Main.
func WriteOrder(w io.Writer, name string, callers int, d time.Duration) error {
	_, err := fmt.Fprintf(w, "%s|%d|%s\n", name, callers, d)
	return err
}

func serve(c Client, order string) (Figure, error) {
	var callers int
	var d time.Duration
	name, rest, _ := strings.Cut(order, "|")
	count, length, _ := strings.Cut(rest, "|")
	if _, err := fmt.Sscan(count, &callers); err != nil {
		return Figure{}, err
	}
	d, err := time.ParseDuration(length)
	if err != nil {
		return Figure{}, err
	}
	j := jobs[name]
	if j == nil {
		return Figure{}, fmt.Errorf("unknown job %q", name)
	}
	if _, err := run(c, j, callers, d/5); err != nil { // warm up connections and pools
		return Figure{}, err
	}
	return measure(c, j, callers, d)
}

func measure(c Client, j job, callers int, d time.Duration) (Figure, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	from, err := load.CPU(os.Getpid())
	if err != nil {
		return Figure{}, err
	}
	n, err := run(c, j, callers, d)
	if err != nil {
		return Figure{}, err
	}
	to, err := load.CPU(os.Getpid())
	if err != nil {
		return Figure{}, err
	}
	runtime.ReadMemStats(&after)
	return Figure{
		Calls: n, CPU: (to - from) / time.Duration(n),
		Allocs: float64(after.Mallocs-before.Mallocs) / float64(n), Bytes: float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}, nil
}

// run makes calls for the duration and returns their number.
func run(c Client, j job, callers int, d time.Duration) (int, error) {
	var wg sync.WaitGroup
	var n atomic.Int64
	var failed atomic.Pointer[error]
	ctx := context.Background()
	end := time.Now().Add(d)
	for range callers {
		wg.Go(func() {
			for time.Now().Before(end) && failed.Load() == nil {
				if err := j(ctx, c); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return int(n.Load()), nil
}
