package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func (b *bench) add(r *row) { b.rows = append(b.rows, r) }

// plan lists the rows.
func (b *bench) plan() {
	for i := range jobs[:4] {
		j := &jobs[i]
		b.add(&row{group: "in memory", name: j.name, unit: "µs", mean: true, measure: func(who string) (float64, error) {
			s, err := b.server(who, "memory", 4)
			if err != nil {
				return 0, err
			}
			return s.ask("%d %s", i, b.slice/4)
		}})
	}
	b.calls("stdio", "stdio", func(s *child, j *job, callers int, before func()) (int, error) {
		return s.pipe.run(j, callers, b.slice, before)
	})
	for group, modern := range versions {
		b.calls(group, "http", func(s *child, j *job, callers int, before func()) (int, error) {
			return overHTTP(s.addr, modern, j, callers, b.slice, before)
		})
		b.add(&row{group: group, name: "tools/list of 1000", unit: "µs", measure: func(who string) (float64, error) {
			s, err := b.server(who, "http", 1000)
			if err != nil {
				return 0, err
			}
			return s.cpu(func(before func()) (int, error) {
				return overHTTP(s.addr, modern, &jobs[4], 1, b.slice, before)
			})
		}})
	}
	b.starts()
	b.streams()
}

// versions are the two families of protocol versions.
var versions = func(yield func(group string, modern bool) bool) {
	_ = yield("HTTP 2025-11-25", false) && yield("HTTP 2026-07-28", true)
}

// calls adds rows for one caller and for 64 concurrent ones. 64 results of 1 MiB at a time would be
// more than a server holds for one client.
func (b *bench) calls(group, over string, run func(s *child, j *job, callers int, before func()) (int, error)) {
	for i := range jobs[:4] {
		j := &jobs[i]
		for _, callers := range []int{1, 64} {
			if callers > 1 && j.tool == "blob" {
				continue
			}
			name := fmt.Sprintf("%s x%d", j.name, callers)
			b.add(&row{group: group, name: name, unit: "µs", mean: true, measure: func(who string) (float64, error) {
				s, err := b.server(who, over, 4)
				if err != nil {
					return 0, err
				}
				return s.cpu(func(before func()) (int, error) { return run(s, j, callers, before) })
			}})
		}
	}
}

// starts adds rows for what a program costs before its first call. The programs with one tool link
// one SDK each. Those with 1,000 tools are this program, so all of them start the same packages.
func (b *bench) starts() {
	one := func(who string) (string, error) { return b.build(who, true) }
	thousand := func(who string) (string, error) { return b.build(who, false) }
	for _, r := range []struct {
		name, unit string
		path       func(who string) (string, error)
		figure     func(l life) float64
	}{
		{"CPU until the first response, 1 tool", "ms", one, func(l life) float64 { return l.cpu }},
		{"resident memory at the first response, 1 tool", "MB", one, func(l life) float64 { return l.memory }},
		{"CPU until the first response, 1000 tools", "ms", thousand, func(l life) float64 { return l.cpu }},
	} {
		b.add(&row{group: "start", name: r.name, unit: r.unit, measure: func(who string) (least float64, err error) {
			path, err := r.path(who)
			if err != nil {
				return 0, err
			}
			for i := range 5 {
				l, err := live(path, "-serve", sdk(who), "-tools", "1000")
				if err != nil {
					return 0, err
				}
				if v := r.figure(l); i == 0 || v < least {
					least = v
				}
			}
			return least, nil
		}})
	}
	size := func(who string) (float64, error) {
		path, err := one(who)
		if err != nil {
			return 0, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		return float64(info.Size()) / 1e6, nil
	}
	modules := func(who string) (float64, error) {
		path, err := one(who)
		if err != nil {
			return 0, err
		}
		out, err := exec.Command("go", "version", "-m", path).Output()
		return float64(strings.Count(string(out), "\n\tdep\t")), err
	}
	b.add(&row{group: "start", name: "stripped binary, 1 tool", unit: "MB", once: true, measure: size})
	b.add(&row{group: "start", name: "linked modules, 1 tool", once: true, measure: modules})
}

// streams adds rows for sessions that listen to notifications with a GET.
func (b *bench) streams() {
	const n = 1000
	for _, kind := range []string{"heap", "goroutines"} {
		name, unit, scale := kind+" of an idle stream", "kB", 1e3
		if kind == "goroutines" {
			unit, scale = "", 1
		}
		b.add(&row{group: "streams", name: name, unit: unit, once: true, measure: func(who string) (float64, error) {
			s, err := b.fresh(who, "http", 4)
			if err != nil {
				return 0, err
			}
			defer s.stop()
			some, err := openStreams(s.addr, 10) // for what the process allocates only once
			if err != nil {
				return 0, err
			}
			defer some.close()
			before, err := s.ask(kind)
			if err != nil {
				return 0, err
			}
			all, err := openStreams(s.addr, n)
			if err != nil {
				return 0, err
			}
			defer all.close()
			after, err := s.ask(kind)
			return (after - before) / n / scale, err
		}})
	}
	name := "CPU for each of 1000 notified streams"
	b.add(&row{group: "streams", name: name, unit: "µs", measure: func(who string) (float64, error) {
		s, err := b.fresh(who, "http", 4)
		if err != nil {
			return 0, err
		}
		defer s.stop()
		all, err := openStreams(s.addr, n)
		if err != nil {
			return 0, err
		}
		defer all.close()
		return s.cpu(func(before func()) (int, error) {
			for i := range 31 {
				if i == 1 {
					before()
				}
				if _, err := s.ask("notify"); err != nil {
					return 0, err
				}
				if err := all.wait(); err != nil {
					return 0, err
				}
			}
			return 30 * n, nil
		})
	}})
}
