// Command startup measures what a stdio program costs before its first call: the size of the
// binary, the time from the start of the process to the response to initialize, and the CPU time
// and memory of the whole short life. The floor is the same work written by hand, without a
// framework.
//
//	go run ./cmd/startup            # a minute, Linux
//	go run ./cmd/startup -runs 101
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

var contenders = []string{"floor", "mcpkit", "gosdk", "mcpgo"}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n"

// A life is what one process cost.
type life struct {
	response, cpu time.Duration
	memory        int64 // kB
}

func main() {
	runs := flag.Int("runs", 31, "how often each program is started")
	flag.Parse()
	if err := run(*runs); err != nil {
		log.Fatal(err)
	}
}

func run(runs int) error {
	dir, err := os.MkdirTemp("", "startup")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	size := map[string][2]int64{}
	for _, name := range contenders {
		for i, linker := range []string{"", "-s -w"} {
			if size[name], err = build(dir, name, linker, i, size[name]); err != nil {
				return err
			}
		}
	}
	lives := map[string][]life{}
	for range runs {
		for _, name := range contenders {
			l, err := live(filepath.Join(dir, name+"0"))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			lives[name] = append(lives[name], l)
		}
	}
	fmt.Println("| | binary | with -s -w | first response | CPU | memory |\n|---|---:|---:|---:|---:|---:|")
	for _, name := range contenders {
		l := lives[name]
		fmt.Printf("| %s | %.1f MB | %.1f MB | %.1f ms | %.1f ms | %.1f MB |\n", name,
			float64(size[name][0])/1e6, float64(size[name][1])/1e6,
			milliseconds(median(l, func(l life) time.Duration { return l.response })),
			milliseconds(median(l, func(l life) time.Duration { return l.cpu })),
			float64(median(l, func(l life) int64 { return l.memory }))/1e3)
	}
	return nil
}

// build builds a contender and puts the size of its binary at i.
func build(dir, name, linker string, i int, sizes [2]int64) ([2]int64, error) {
	path := filepath.Join(dir, fmt.Sprint(name, i))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", linker, "-o", path, "github.com/mcpkit/mcpkit-go/bench/cmd/server-"+name)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return sizes, fmt.Errorf("building %s: %w (run in bench/)", name, err)
	}
	info, err := os.Stat(path)
	if err == nil {
		sizes[i] = info.Size()
	}
	return sizes, err
}

// live starts a program, waits for its first response and ends it.
func live(path string) (life, error) {
	cmd := exec.Command(path)
	in, err := cmd.StdinPipe()
	if err != nil {
		return life{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return life{}, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return life{}, err
	}
	_, err = io.WriteString(in, initialize)
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	l := life{response: time.Since(begun)}
	_ = in.Close()
	_ = cmd.Wait()
	l.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	l.memory = peak(cmd.ProcessState)
	return l, err
}

func median[T cmp.Ordered](lives []life, of func(life) T) T {
	values := make([]T, len(lives))
	for i, l := range lives {
		values[i] = of(l)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
