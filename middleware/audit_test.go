package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
)

func TestAuditSaysWhoCalledWhatAndHowItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		srv := newServer(t, mcpkit.NewTool("login", func(in login) error { time.Sleep(time.Second); return errors.New("secret text") }))
		srv.Use(middleware.Audit(middleware.NewAuditLog(&b), middleware.AuditBegin(), middleware.AuditArguments()))
		srv.UseFor(mcpkit.OnTool("closed"), middleware.Scopes("s"))
		require.NoError(t, srv.Add(mcpkit.NewTool("closed", ok)))
		p := legacy(t, srv, "0123456789abcdef")
		b.Reset() // of the beginning of the session
		p.call(as(t.Context(), "ann"), "tools/call", `{"name":"login","arguments":{"user":"ann","pass":"s3cret"}}`)
		p.call(t.Context(), "tools/call", `{"name":"closed"}`)
		got := lines(t, b.String())
		require.Len(t, got, 4)
		ref := got[0]["ref"]
		require.Len(t, ref, 10)
		begin := map[string]any{
			"time": "2000-01-01T00:00:00Z", "event": "begin", "ref": ref, "request": "1", "method": "tools/call", "name": "login", "version": "2025-11-25",
			"principal": map[string]any{"subject": "ann"}, "session": "01234567…", "arguments": map[string]any{"user": "ann", "pass": "[redacted]"},
		}
		require.Equal(t, begin, got[0])
		end := begin
		end["time"], end["event"], end["outcome"], end["durationMs"] = "2000-01-01T00:00:01Z", "end", "error", 1000.0
		require.Equal(t, end, got[1])
		require.Equal(t, "denied", got[3]["outcome"])
		require.EqualValues(t, mcpkit.CodeForbidden, got[3]["code"])
		require.NotContains(t, got[3], "principal")
	})
}

// limited is a writer that fails after so many bytes, like a full disk.
type limitedWriter struct {
	bytes.Buffer
	left int
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	w.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errors.New("disk full")
	}
	return n, nil
}

func TestNoAnswerLeavesWithoutItsRecord(t *testing.T) {
	ran := 0
	w := &limitedWriter{left: 1 << 20}
	srv := newServer(t, mcpkit.NewTool("x", func() string { ran++; return "answer" }))
	srv.Use(middleware.Audit(middleware.NewAuditLog(w)))
	p := modern(t, srv)
	require.Equal(t, "answer", p.toolText(t.Context(), "x"))
	whole := w.Len()
	w.left = 10 // half a line fits
	require.Equal(t, "the audit log cannot be written, so there is no result", p.toolText(t.Context(), "x"))
	require.Equal(t, whole+10, w.Len())
	w.left = 1 << 20
	require.Equal(t, "the audit log cannot be written, so there is no result", p.toolText(t.Context(), "x"), "nothing is appended to half a line")
	require.Equal(t, whole+10, w.Len())
	require.Equal(t, 3, ran)
}

func TestWithBeginNothingRunsWithoutARecord(t *testing.T) {
	ran := 0
	srv := newServer(t, mcpkit.NewTool("x", func() { ran++ }))
	srv.Use(middleware.Audit(middleware.NewAuditLog(&limitedWriter{}), middleware.AuditBegin()))
	require.Equal(t, "the audit log cannot be written, so there is no result", modern(t, srv).toolText(t.Context(), "x"))
	require.Zero(t, ran)
}

func TestARefusalIsNotShownWithoutItsRecord(t *testing.T) {
	srv := newServer(t, mcpkit.NewTool("x", ok))
	srv.Use(middleware.Audit(middleware.NewAuditLog(&limitedWriter{})))
	require.Equal(t, "the audit log cannot be written, so there is no result", modern(t, srv).toolText(t.Context(), "unknown"))
}

func TestACallWhoseResultIsANilPointerHasItsRecord(t *testing.T) {
	var b bytes.Buffer
	srv := newServer(t, mcpkit.NewTool("ok", ok))
	srv.Use(middleware.Audit(middleware.NewAuditLog(&b)))
	srv.UseFor(mcpkit.OnTool("ok"), wrap(func(context.Context, *mcpkit.Call, mcpkit.Handler) (mcpkit.Result, error) {
		return (*mcpkit.ToolResult)(nil), nil
	}))
	require.NotNil(t, modern(t, srv).call(t.Context(), "tools/call", `{"name":"ok"}`).Error)
	require.Len(t, lines(t, b.String()), 1)
}

func TestAuditFileIsAppendedTo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 {
		log, err := middleware.OpenAuditFile(file)
		require.NoError(t, err)
		srv := newServer(t, mcpkit.NewTool("x", ok))
		srv.Use(middleware.Audit(log))
		modern(t, srv).toolText(t.Context(), "x")
		require.NoError(t, log.Close())
		require.NoError(t, log.Close(), "twice is fine")
		require.Equal(t, "the audit log cannot be written, so there is no result", modern(t, srv).toolText(t.Context(), "x"), "closed")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, lines(t, string(text)), 2)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func syncIf(sync bool) []middleware.AuditFileOption {
	if sync {
		return []middleware.AuditFileOption{middleware.SyncAudit()}
	}
	return nil
}

func TestHalfALineIsCutOff(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, test := range []struct{ name, was, want string }{
		{"whole", "{}\n{}\n", "{}\n{}\n"},
		{"half", "{}\n{\"a", "{}\n"},
		{"half a long one", "{}\n" + long, "{}\n"},
		{"only half", long, ""},
		{"empty", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "audit.jsonl")
			require.NoError(t, os.WriteFile(file, []byte(test.was), 0o600))
			log, err := middleware.OpenAuditFile(file)
			require.NoError(t, err)
			require.NoError(t, log.Close())
			got, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
	_, err := middleware.OpenAuditFile(t.TempDir())
	require.Error(t, err)
}

func TestCallsThatEndTogetherAreAllInTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := middleware.OpenAuditFile(file, middleware.SyncAudit())
	require.NoError(t, err)
	srv := newServer(t, mcpkit.NewTool("x", ok))
	srv.Use(middleware.Audit(log))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				modern(t, srv).toolText(t.Context(), "x")
			}
		})
	}
	wg.Wait()
	require.NoError(t, log.Close())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, lines(t, string(text)), 200)
}

func TestAnAuditFileThatWasRenamedIsReopened(t *testing.T) {
	for _, sync := range []bool{false, true} {
		dir := t.TempDir()
		file := filepath.Join(dir, "audit.jsonl")
		log, err := middleware.OpenAuditFile(file, syncIf(sync)...)
		require.NoError(t, err)
		srv := newServer(t, mcpkit.NewTool("x", ok))
		srv.Use(middleware.Audit(log))
		p := modern(t, srv)
		records := func(name string) int {
			text, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			return len(lines(t, string(text)))
		}
		p.toolText(t.Context(), "x")
		require.NoError(t, log.Reopen(), "nothing was renamed")
		p.toolText(t.Context(), "x")
		require.Equal(t, 2, records("audit.jsonl"))

		require.NoError(t, os.Rename(file, filepath.Join(dir, "old.jsonl")))
		p.toolText(t.Context(), "x")
		require.Equal(t, 3, records("old.jsonl"), "until it is told the log stays where it is")
		require.NoError(t, log.Reopen())
		p.toolText(t.Context(), "x")
		require.Equal(t, 3, records("old.jsonl"))
		require.Equal(t, 1, records("audit.jsonl"))

		require.NoError(t, os.Remove(file))
		require.NoError(t, os.Mkdir(file, 0o700))
		require.Error(t, log.Reopen())
		require.Equal(t, "ok", p.toolText(t.Context(), "x"), "the old file is still there to write to")
		require.NoError(t, os.Remove(file))
		require.NoError(t, log.Reopen())
		require.Equal(t, "ok", p.toolText(t.Context(), "x"))
		require.Equal(t, 1, records("audit.jsonl"))
		require.NoError(t, log.Close())
		require.ErrorIs(t, log.Reopen(), os.ErrClosed)
	}
	require.ErrorIs(t, middleware.NewAuditLog(io.Discard).Reopen(), errors.ErrUnsupported)
}

func TestNoRecordIsLostWhileFilesAreRotated(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.jsonl")
	log, err := middleware.OpenAuditFile(file, middleware.SyncAudit())
	require.NoError(t, err)
	srv := newServer(t, mcpkit.NewTool("x", func(call *mcpkit.Call) string { return call.Ref() }))
	srv.Use(middleware.Audit(log))
	var wg sync.WaitGroup
	var mu sync.Mutex
	answered := map[any]bool{}
	for range 4 {
		wg.Go(func() {
			for range 50 {
				ref := modern(t, srv).toolText(t.Context(), "x")
				mu.Lock()
				answered[ref] = true
				mu.Unlock()
			}
		})
	}
	for i := range 5 {
		require.NoError(t, os.Rename(file, fmt.Sprintf("%s.%d", file, i)))
		require.NoError(t, log.Reopen())
	}
	wg.Wait()
	require.NoError(t, log.Close())
	require.Len(t, answered, 200)
	files, err := filepath.Glob(file + "*")
	require.NoError(t, err)
	require.Len(t, files, 6)
	written := map[any]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, record := range lines(t, string(text)) {
			written[record["ref"]] = true
		}
	}
	require.Equal(t, answered, written)
}
