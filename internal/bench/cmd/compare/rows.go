package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/answer"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/load"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

// A row is one figure of every server.
type row struct {
	group, name, unit string
	mean              bool     // counts for the geometric mean of the group
	who               []string // empty means all
	once              bool     // the figure hardly varies, so it is measured in the first round only
	f                 func(who string) (float64, error)
	figures           map[string][]float64
}

func (b *bench) add(r *row) { b.rows = append(b.rows, r) }

var ours = []string{"mcpkit"}

// plan lists the rows.
func (b *bench) plan() {
	b.inProcess("in memory", func(who string) answer.Func { return answer.Memory(who, 4) })
	list := &load.Jobs[4]
	b.add(&row{group: "in memory", name: "tools/list of 1000", unit: "µs", f: b.quick("1000", func(who string) answer.Func { return answer.Memory(who, 1000) }, list)})
	b.inProcess("in memory, a goroutine for each call", answer.Apart)
	b.inProcess("HTTP handler", answer.Handler)

	b.remote("stdio", func(p *process, j *load.Job, callers int, before func()) (int, error) {
		return p.pipe.Run(j, callers, b.slice, before)
	})
	overTLS := []string{"-http", "-tls", filepath.Join(b.dir, "certificate")}
	for _, s := range []struct {
		name string
		how  load.Server
		args []string
	}{
		{"HTTP 2025-11-25, session", load.Server{}, []string{"-http"}},
		{"HTTP 2025-11-25, stateless", load.Server{}, []string{"-http", "-stateless"}},
		{"HTTP 2026-07-28", load.Server{Modern: true}, []string{"-http"}},
		{"HTTPS 2025-11-25, session", load.Server{TLS: true}, overTLS},
		{"HTTPS 2026-07-28", load.Server{TLS: true, Modern: true}, overTLS},
		{"HTTP/2 2025-11-25, session", load.Server{H2: true}, overTLS},
		{"HTTP/2 2026-07-28", load.Server{H2: true, Modern: true}, overTLS},
	} {
		run := func(p *process, j *load.Job, callers int, before func()) (int, error) {
			s.how.Addr = p.addr
			return load.HTTP(s.how, j, callers, b.slice, before)
		}
		b.remote(s.name, run, s.args...)
		b.add(&row{group: s.name, name: "allocations of add", f: func(who string) (float64, error) {
			p, err := b.server(who, s.args...)
			if err != nil {
				return 0, err
			}
			from := 0.0
			n, err := run(p, &load.Jobs[0], 1, func() { from, _, _, err = p.stats() })
			if err != nil {
				return 0, err
			}
			to, _, _, err := p.stats()
			return (to - from) / float64(n), err
		}})
		b.add(&row{group: s.name, name: "tools/list of 1000", unit: "µs", f: func(who string) (float64, error) {
			p, err := b.server(who, append([]string{"-tools", "1000"}, s.args...)...)
			if err != nil {
				return 0, err
			}
			return p.cpu(func(before func()) (int, error) { return run(p, list, 1, before) })
		}})
	}
	b.starts()
	b.streams()
	b.rates("1000 add/s over HTTP", "", func(who string) (*process, error) { return b.server(who, "-http") })
	b.rates("1000 add/s through echo with Gzip, JWT and CORS", work.Fields, func(who string) (*process, error) {
		return b.server("echo", "-http", "-sdk", who)
	})
	b.peaks()
	b.clients()
	b.connections()
	b.growth()
}

// inProcess adds rows for a server in this process, with one caller.
func (b *bench) inProcess(group string, server func(who string) answer.Func) {
	for i := range load.Jobs[:4] {
		j := &load.Jobs[i]
		b.add(&row{group: group, name: j.Name, unit: "µs", mean: true, f: b.quick(group, server, j)})
	}
	for _, kind := range []string{"allocations", "bytes"} {
		b.add(&row{group: group, name: kind + " of add", once: true, f: func(who string) (float64, error) {
			f, msg := server(who), body(&load.Jobs[0])
			out := f(nil, msg)
			if kind == "allocations" {
				return testing.AllocsPerRun(1000, func() { out = f(out[:0], msg) }), nil
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 1000 {
				out = f(out[:0], msg)
			}
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc-before.TotalAlloc) / 1000, nil
		}})
	}
}

func body(j *load.Job) []byte {
	msg, _ := j.Body(false)
	return msg
}

// quick returns a function that measures requests in this process, in short slices.
func (b *bench) quick(key string, server func(who string) answer.Func, j *load.Job) func(who string) (float64, error) {
	return func(who string) (float64, error) { return spend(b.answerer(key+who, who, server), j, b.slice/4) }
}

// answerer returns a server in this process, which it makes once for each key.
func (b *bench) answerer(key, who string, server func(who string) answer.Func) answer.Func {
	f := b.answerers[key]
	if f == nil {
		f = server(who)
		b.answerers[key] = f
	}
	return f
}

// spend measures the CPU time of this process for one request, in microseconds.
func spend(f answer.Func, j *load.Job, d time.Duration) (float64, error) {
	msg := body(j)
	out := f(nil, msg)
	if err := j.Check(out); err != nil {
		return 0, err
	}
	runtime.GC()
	pid := os.Getpid()
	from, err := load.CPU(pid)
	if err != nil {
		return 0, err
	}
	for n := 1; ; n++ {
		out = f(out[:0], msg)
		if n&15 != 0 {
			continue
		}
		if now, err := load.CPU(pid); err != nil || now-from > d {
			return micros(now-from) / float64(n), err
		}
	}
}

// remote adds rows for a server in its own process.
func (b *bench) remote(group string, run func(p *process, j *load.Job, callers int, before func()) (int, error), args ...string) {
	for i := range load.Jobs {
		j := &load.Jobs[i]
		for _, callers := range []int{1, 64} {
			if callers > 1 && i > 2 { // 64 results of 1 MiB are more than a server holds for one caller
				continue
			}
			b.add(&row{group: group, name: fmt.Sprintf("%s x%d", j.Name, callers), unit: "µs", mean: i < 4, f: func(who string) (float64, error) {
				p, err := b.server(who, args...)
				if err != nil {
					return 0, err
				}
				return p.cpu(func(before func()) (int, error) { return run(p, j, callers, before) })
			}})
		}
	}
}

// starts adds rows for what a program costs before its first call.
func (b *bench) starts() {
	for _, tools := range []int{1, 1000} {
		for _, kind := range []string{"CPU", "wall", "resident"} {
			name := fmt.Sprintf("%s until the first response, %d tools", kind, tools)
			unit := "ms"
			if tools == 1 {
				name = strings.TrimSuffix(name, "s")
			}
			if kind == "resident" {
				name, unit = strings.Replace(name, "resident until", "resident memory at", 1), "MB"
			}
			b.add(&row{group: "start", name: name, unit: unit, f: func(who string) (float64, error) {
				var least life
				for range 5 {
					program, args := "one-"+who, []string(nil)
					if tools > 1 {
						program, args = "server-"+who, []string{"-tools", strconv.Itoa(tools)}
					}
					path, err := b.build(program)
					if err != nil {
						return 0, err
					}
					l, err := live(path, args...)
					if err != nil {
						return 0, err
					}
					if least == (life{}) {
						least = l
					}
					least = life{min(least.wall, l.wall), min(least.cpu, l.cpu), min(least.memory, l.memory)}
				}
				return map[string]float64{"CPU": least.cpu, "wall": least.wall, "resident": least.memory}[kind], nil
			}})
		}
	}
	b.add(&row{group: "start", name: "stripped binary, one tool", unit: "MB", once: true, f: func(who string) (float64, error) {
		path, err := b.build("one-"+who, "-ldflags=-s -w")
		if err != nil {
			return 0, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		return float64(info.Size()) / 1e6, nil
	}})
	b.add(&row{group: "start", name: "linked modules, one tool", who: servers[1:], once: true, f: func(who string) (float64, error) {
		path, err := b.build("one-" + who)
		if err != nil {
			return 0, err
		}
		out, err := exec.Command("go", "version", "-m", path).Output()
		return float64(strings.Count(string(out), "\n\tdep\t")), err
	}})
	for i, kind := range []string{"CPU of registering a tool", "heap of a tool"} {
		b.add(&row{group: "start", name: kind, unit: []string{"µs", "kB"}[i], who: servers[1:], f: func(who string) (float64, error) {
			out, err := exec.Command(os.Args[0], "-register", who).Output()
			if err != nil {
				return 0, err
			}
			var figures [2]float64
			_, err = fmt.Sscan(string(out), &figures[0], &figures[1])
			return figures[i], err
		}})
	}
}

// register prints what 1,000 tools cost that are added to a server in this process.
func register(who string) error {
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	answer.Memory(who, 4)
	before := heap()
	from, err := load.CPU(os.Getpid())
	if err != nil {
		return err
	}
	f := answer.Registered(who, 1000)
	to, err := load.CPU(os.Getpid())
	fmt.Println(micros(to-from)/1000, (heap()-before)/1e6)
	runtime.KeepAlive(f)
	return err
}

// streams adds rows for streams of notifications, and for sessions whose streams have closed.
func (b *bench) streams() {
	for _, kind := range []string{"streams", "subscriptions"} {
		who := servers
		if kind == "subscriptions" { // mcp-go ends subscriptions to resources at once
			who = slices.DeleteFunc(slices.Clone(servers), func(name string) bool { return name == "mcpgo" })
		}
		for i, figure := range []string{"CPU", "allocations"} {
			b.add(&row{group: "notifications", name: figure + " for each of 1000 " + kind, unit: []string{"µs", ""}[i], who: who, f: func(who string) (float64, error) {
				cpu, allocs, err := b.fan(who, 1000, kind == "subscriptions")
				return []float64{cpu, allocs}[i], err
			}})
		}
	}
	b.add(&row{group: "notifications", name: "heap of an idle session", unit: "kB", who: servers[1:], once: true, f: func(who string) (float64, error) {
		const n = 1000
		p, err := b.fresh(who, "-http")
		if err != nil {
			return 0, err
		}
		defer p.stop()
		for range 2 { // what the process allocates once
			s, err := load.OpenStreams(load.Server{Addr: p.addr}, 10)
			if err != nil {
				return 0, err
			}
			s.Close()
		}
		time.Sleep(time.Second)
		_, before, _, err := p.stats()
		if err != nil {
			return 0, err
		}
		s, err := load.OpenStreams(load.Server{Addr: p.addr}, n)
		if err != nil {
			return 0, err
		}
		s.Close()
		time.Sleep(2 * time.Second) // until the server has seen that the connections are gone
		_, after, _, err := p.stats()
		return (after - before) / n / 1e3, err
	}})
}

// rates adds rows for requests at a fixed rate, which leaves the server time to sleep.
func (b *bench) rates(group, fields string, server func(who string) (*process, error)) {
	for i, kind := range []string{"CPU", "median", "99 %"} {
		b.add(&row{group: group, name: kind, unit: "µs", f: func(who string) (v float64, err error) {
			p, err := server(who)
			if err != nil {
				return 0, err
			}
			cpu, err := p.cpu(func(before func()) (int, error) {
				times, err := load.Rate(load.Server{Addr: p.addr, Fields: fields}, &load.Jobs[0], 1000, 2*b.slice, before)
				if err == nil && i > 0 {
					v = micros(times[[]int{0, len(times) / 2, len(times) * 99 / 100}[i]])
				}
				return len(times), err
			})
			if i == 0 {
				v = cpu
			}
			return v, err
		}})
	}
}

// connections adds rows for the connections that a client makes to the floor server, with the HTTP
// client that its library uses by default: those of 64 callers that have just begun, and later.
func (b *bench) connections() {
	for i, over := range []string{"HTTP", "HTTPS", "HTTP/2", "HTTP", "HTTPS", "HTTP/2"} {
		name := "64 callers over " + over
		if i > 2 {
			name = "1000 later calls over " + over
		}
		b.add(&row{group: "connections of a client", name: name, who: servers[1:], f: func(who string) (float64, error) {
			path, err := b.build("client-" + who)
			if err != nil {
				return 0, err
			}
			args, env, scheme := []string{"-http"}, []string(nil), "http"
			if over != "HTTP" {
				certificate := filepath.Join(b.dir, "certificate of the floor")
				args, env, scheme = append(args, "-tls", certificate), []string{"SSL_CERT_FILE=" + certificate}, "https"
			}
			if over == "HTTPS" { // with HTTP/1.1
				env = append(env, "GODEBUG=http2client=0")
			}
			server, err := b.server("floor", args...)
			if err != nil {
				return 0, err
			}
			_, _, from, err := server.stats()
			if err != nil {
				return 0, err
			}
			p, err := startIn(env, path, "-stock", "-url", scheme+"://"+server.addr+"/mcp")
			if err != nil {
				return 0, err
			}
			defer p.stop()
			order := func() (conns, made float64, err error) {
				if err := calls.WriteOrder(p.in, "add", 64, b.slice); err != nil {
					return 0, 0, err
				}
				f, err := calls.ReadFigure(p.out)
				if err != nil {
					return 0, 0, err
				}
				_, _, conns, err = server.stats()
				return conns, float64(f.Calls), err
			}
			to, _, err := order()
			if err != nil || i < 3 {
				return to - from, err
			}
			later, made, err := order()
			return (later - to) * 1000 / made, err
		}})
	}
}

// fan returns the CPU time in microseconds, and the allocations, for each of n streams of sessions, or
// of subscriptions of 2026-07-28.
func (b *bench) fan(who string, n int, modern bool) (cpu, allocs float64, err error) {
	p, err := b.fresh(who, "-http")
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	s, err := load.OpenStreams(load.Server{Addr: p.addr, Modern: modern}, n)
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	notify := func() error {
		if _, err := io.WriteString(p.in, "notify\n"); err != nil {
			return err
		}
		return s.Wait()
	}
	if err := notify(); err != nil {
		return 0, 0, err
	}
	before, _, _, err := p.stats()
	if err != nil {
		return 0, 0, err
	}
	times := max(30, 10000/n)
	cpu, err = p.cpu(func(before func()) (int, error) {
		before()
		for range times {
			if err := notify(); err != nil {
				return 0, err
			}
		}
		return n * times, nil
	})
	if err != nil {
		return 0, 0, err
	}
	after, _, _, err := p.stats()
	return cpu, (after - before) / float64(n*times), err
}

// peaks adds rows for the largest resident memory under load.
func (b *bench) peaks() {
	for _, j := range []struct{ at, callers int }{{1, 64}, {3, 16}} {
		job := &load.Jobs[j.at]
		b.add(&row{group: "peak memory under HTTP load", name: fmt.Sprintf("%s x%d", job.Name, j.callers), unit: "MB", f: func(who string) (float64, error) {
			p, err := b.fresh(who, "-http")
			if err != nil {
				return 0, err
			}
			defer p.stop()
			if _, err := load.HTTP(load.Server{Addr: p.addr}, job, j.callers, 4*b.slice, func() {}); err != nil {
				return 0, err
			}
			kb, err := strconv.Atoi(strings.TrimSuffix(load.PeakRSS(p.cmd.Process.Pid), " kB"))
			return float64(kb) / 1e3, err
		}})
	}
}

// clients adds rows for clients that read a large result from the floor server.
func (b *bench) clients() {
	for _, over := range []string{"HTTP", "stdio"} {
		b.add(&row{group: "client", name: "blob 1M over " + over, unit: "µs", f: func(who string) (float64, error) {
			if who == "floor" && over == "HTTP" {
				who = "wire" // without net/http
			}
			path, err := b.build("client-" + who)
			if err != nil {
				return 0, err
			}
			server, err := b.server("floor", "-http")
			if err != nil {
				return 0, err
			}
			args := []string{"-url", "http://" + server.addr + "/mcp"}
			if over == "stdio" {
				floor, err := b.build("server-floor")
				if err != nil {
					return 0, err
				}
				args = []string{"-server", floor}
			}
			p, err := start(path, args...)
			if err != nil {
				return 0, err
			}
			defer p.stop()
			if err := calls.WriteOrder(p.in, "blob 1M", 1, b.slice); err != nil {
				return 0, err
			}
			f, err := calls.ReadFigure(p.out)
			return micros(f.CPU), err
		}})
	}
}

// A curve is a cost that grows with a size.
type curve struct {
	name, x string
	sizes   []int
	f       func(size int) (float64, error)
}

func (b *bench) curves() []curve {
	add := &load.Jobs[0]
	once := func(server func() answer.Func, j *load.Job) (float64, error) { return spend(server(), j, b.slice/4) }
	return []curve{
		{"echo", "kB of text", []int{1, 4, 16, 64, 256, 1024}, func(n int) (float64, error) {
			j := load.Job{Name: "echo", Method: "tools/call", Tool: "echo", Args: `{"text":"` + strings.Repeat("0123456789abcdef", n*64) + `"}`, Want: "789abcdef"}
			return once(func() answer.Func { return answer.Memory("mcpkit", 4) }, &j)
		}},
		{"nested arguments", "levels", []int{2, 8, 32, 100}, func(n int) (float64, error) {
			j := load.Job{Name: "nest", Method: "tools/call", Tool: "nest", Args: `{"value":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + "}", Want: "ok"}
			return once(answer.Nested, &j)
		}},
		{"tools-list", "tools", []int{4, 16, 64, 250, 1000}, func(n int) (float64, error) {
			return once(func() answer.Func { return answer.Memory("mcpkit", n) }, &load.Job{Name: "tools/list", Method: "tools/list", Want: "blob"})
		}},
		{"a call beside tools", "tools", []int{4, 16, 64, 250, 1000}, func(n int) (float64, error) {
			return once(func() answer.Func { return answer.Memory("mcpkit", n) }, add)
		}},
		{"a call beside sessions", "sessions", []int{1, 10, 100, 1000, 10000}, func(n int) (float64, error) {
			return once(func() answer.Func { return answer.Sessions(n) }, add)
		}},
		{"one change", "subscribers", []int{10, 30, 100, 300, 1000}, func(n int) (float64, error) {
			cpu, _, err := b.fan("mcpkit", n, false)
			return cpu * float64(n), err
		}},
	}
}

// growth adds a row for each size of each curve.
func (b *bench) growth() {
	for _, c := range b.curves() {
		for _, n := range c.sizes {
			b.add(&row{group: "growth", name: fmt.Sprintf("%s, %d %s", c.name, n, c.x), unit: "µs", who: ours, f: func(string) (float64, error) { return c.f(n) }})
		}
	}
}

func (r *row) names() []string {
	if r.who != nil {
		return r.who
	}
	return servers
}

func (r *row) key() string { return r.group + ": " + r.name }
