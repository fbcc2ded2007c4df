//go:build unix && !solaris && !aix

package middleware_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
)

func TestAnAuditFileHasOneWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := middleware.OpenAuditFile(file)
	require.NoError(t, err)
	_, err = middleware.OpenAuditFile(file)
	require.EqualError(t, err, "middleware: audit file "+file+": another process, or another log of this process, writes to it; use one file for each")
	require.NoError(t, log.Close())
	log, err = middleware.OpenAuditFile(file)
	require.NoError(t, err)
	require.NoError(t, log.Close())
}

// In a container, /dev/stdout is a pipe.
func TestAuditFilesMayBePipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	defer reader.Close()
	log, err := middleware.OpenAuditFile(pipe, middleware.SyncAudit())
	require.NoError(t, err)
	srv := newServer(t, mcpkit.NewTool("find", ok))
	srv.Use(middleware.Audit(log))
	modern(t, srv).toolText(t.Context(), "find")
	line, err := bufio.NewReader(reader).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `"find"`)
	require.ErrorContains(t, log.Reopen(), "not a file")
	require.NoError(t, log.Close())
}

func init() {
	programs["audit-victim"] = auditVictim
	programs["audit-full-disk"] = auditFullDisk
}

// auditVictim answers calls with arguments of size bytes until it is killed. It prints the ref of
// each answered call.
func auditVictim(args []string) {
	file, size, sync := args[0], args[1], args[2] == "sync"
	log, err := middleware.OpenAuditFile(file, syncIf(sync)...)
	mustDo(err)
	srv := mcpkit.MustNew(nil, quiet)
	mustDo(srv.Add(mcpkit.NewTool("x", func(call *mcpkit.Call, in struct {
		Pad string `json:"pad"`
	}) string {
		return call.Ref()
	})))
	srv.Use(middleware.Audit(log, middleware.AuditBegin(), middleware.AuditArguments()))
	n, err := strconv.Atoi(size)
	mustDo(err)
	pad := `{"pad":"` + strings.Repeat("x", n) + `"}`
	for range 4 {
		go func() { // ends with the program
			t := new(programT)
			for {
				ref := modern(t, srv).toolText(context.Background(), "x", pad)
				_, err := os.Stdout.WriteString(ref + "\n")
				mustDo(err)
			}
		}()
	}
	select {}
}

// A program is killed several times while it writes. The file has a record of each answered call,
// and later records are on lines of their own.
func TestNoAcknowledgedRecordIsLostInACrash(t *testing.T) {
	for _, test := range []struct {
		name   string
		size   int
		sync   string
		answer int // how many answers to wait for, at least, before the end
		rounds int
	}{
		{"short lines", 10, "no", 150, 3},
		{"short lines, synced", 10, "sync", 5, 2},
		{"lines of many pages, which a kill breaks", 150_000, "no", 2, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "audit.jsonl")
			answered := map[string]bool{}
			halves := 0
			for round := range test.rounds {
				out, end := startProgram(t, "audit-victim", file, strconv.Itoa(test.size), test.sync)
				for n := 0; ; n++ {
					if n == test.answer+round { // at another moment each time
						end()
					}
					line, err := out.ReadString('\n')
					if err != nil {
						require.ErrorIs(t, err, io.EOF)
						break // half a line has no ref
					}
					answered[strings.TrimSpace(line)] = true
				}
				if text, err := os.ReadFile(file); err == nil && len(text) > 0 && text[len(text)-1] != '\n' {
					halves++
				}
				log, err := middleware.OpenAuditFile(file)
				require.NoError(t, err)
				require.NoError(t, log.Close())
			}
			t.Logf("%d answers, %d of %d files ended in half a line", len(answered), halves, test.rounds)

			text, err := os.ReadFile(file)
			require.NoError(t, err)
			events := map[string]string{}
			for _, record := range lines(t, string(text)) {
				events[record["ref"].(string)] += record["event"].(string) + " "
			}
			require.GreaterOrEqual(t, len(answered), test.answer*test.rounds)
			for ref := range answered {
				require.Equal(t, "begin end ", events[ref], "the call %s was answered", ref)
			}
		})
	}
}

// auditFullDisk limits the size of its files and answers calls until one is refused. Then it
// continues without the limit.
func auditFullDisk(args []string) {
	signal.Ignore(syscall.SIGXFSZ)
	log, err := middleware.OpenAuditFile(args[0])
	mustDo(err)
	srv := mcpkit.MustNew(nil, quiet)
	mustDo(srv.Add(mcpkit.NewTool("x", ok)))
	srv.Use(middleware.Audit(log))
	var was syscall.Rlimit
	mustDo(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	full := was
	full.Cur = 1000
	mustDo(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full))
	p := modern(new(programT), srv)
	for range 12 {
		fmt.Println(p.toolText(context.Background(), "x"))
	}
	mustDo(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
	fmt.Println(p.toolText(context.Background(), "x"))
}

func TestAFullDiskLeavesWholeLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	out, _ := startProgram(t, "audit-full-disk", file)
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	answers := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, answers, 13)
	fine := 0
	for fine < 12 && answers[fine] == "ok" {
		fine++
	}
	require.Greater(t, fine, 1)
	require.Less(t, fine, 12)
	for _, answer := range answers[fine:12] {
		require.Equal(t, "the audit log cannot be written, so there is no result", answer)
	}
	require.Equal(t, "ok", answers[12], "there is room again")
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, lines(t, string(written)), fine+1)
}

// startProgram runs a program of this test binary. end kills it and waits for it, at the end of the
// test at the latest.
func startProgram(t *testing.T, name string, args ...string) (out *bufio.Reader, end func()) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, append([]string{programMark, name}, args...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // the error says that it was killed
	})
	return bufio.NewReader(pipe), func() { require.NoError(t, cmd.Process.Kill()) }
}

func mustDo(err error) {
	if err != nil {
		panic(err)
	}
}

// programT stands in for a test in a program: a failure ends the program.
type programT struct{ testing.TB }

func (*programT) Helper()                           {}
func (*programT) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*programT) FailNow()                          { panic("failed") }
func (*programT) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (*programT) Context() context.Context          { return context.Background() }
