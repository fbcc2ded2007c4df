package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
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
		srv.Use(middleware.Audit(middleware.NewAuditLog(&b), middleware.AuditOptions{Begin: true, Arguments: true}), middleware.ForTool("closed", middleware.Scopes("s")))
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
			"time": "2000-01-01T00:00:00Z", "event": "begin", "ref": ref, "request": "1", "method": "tools/call", "name": "login", "revision": "2025-11-25",
			"principal": map[string]any{"subject": "ann"}, "session": "01234567…", "arguments": map[string]any{"user": "ann", "pass": "[redacted]"},
		}
		require.Equal(t, begin, got[0])
		end := begin
		end["time"], end["event"], end["outcome"], end["durationMs"] = "2000-01-01T00:00:01Z", "end", "error", 1000.0
		require.Equal(t, end, got[1])
		require.Equal(t, "denied", got[3]["outcome"])
		require.Equal(t, 403.0, got[3]["code"])
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
	srv.Use(middleware.Audit(middleware.NewAuditLog(w), middleware.AuditOptions{}))
	p := modern(t, srv)
	require.Equal(t, "answer", p.toolText(t.Context(), "x"))
	whole := w.Len()
	w.left = 10 // half a line fits
	require.Equal(t, "the audit log cannot be written, so there is no answer", p.toolText(t.Context(), "x"))
	require.Equal(t, whole+10, w.Len())
	w.left = 1 << 20
	require.Equal(t, "the audit log cannot be written, so there is no answer", p.toolText(t.Context(), "x"), "nothing is appended to half a line")
	require.Equal(t, whole+10, w.Len())
	require.Equal(t, 3, ran)
}

func TestWithBeginNothingRunsWithoutARecord(t *testing.T) {
	ran := 0
	srv := newServer(t, mcpkit.NewTool("x", func() { ran++ }))
	srv.Use(middleware.Audit(middleware.NewAuditLog(&limitedWriter{}), middleware.AuditOptions{Begin: true}))
	require.Equal(t, "the audit log cannot be written, so there is no answer", modern(t, srv).toolText(t.Context(), "x"))
	require.Zero(t, ran)
}

func TestARefusalIsNotShownWithoutItsRecord(t *testing.T) {
	srv := newServer(t, mcpkit.NewTool("x", ok))
	srv.Use(middleware.Audit(middleware.NewAuditLog(&limitedWriter{}), middleware.AuditOptions{}))
	require.Equal(t, "the audit log cannot be written, so there is no answer", modern(t, srv).toolText(t.Context(), "unknown"))
}

func TestAuditFileIsAppendedTo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 {
		log, err := middleware.OpenAuditFile(file, middleware.AuditFileOptions{})
		require.NoError(t, err)
		srv := newServer(t, mcpkit.NewTool("x", ok))
		srv.Use(middleware.Audit(log, middleware.AuditOptions{}))
		modern(t, srv).toolText(t.Context(), "x")
		require.NoError(t, log.Close())
		require.NoError(t, log.Close(), "twice is fine")
		require.Equal(t, "the audit log cannot be written, so there is no answer", modern(t, srv).toolText(t.Context(), "x"), "closed")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, lines(t, string(text)), 2)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
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
			log, err := middleware.OpenAuditFile(file, middleware.AuditFileOptions{})
			require.NoError(t, err)
			require.NoError(t, log.Close())
			got, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
	_, err := middleware.OpenAuditFile(t.TempDir(), middleware.AuditFileOptions{})
	require.Error(t, err)
}

func TestCallsThatEndTogetherAreAllInTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := middleware.OpenAuditFile(file, middleware.AuditFileOptions{Sync: true})
	require.NoError(t, err)
	srv := newServer(t, mcpkit.NewTool("x", ok))
	srv.Use(middleware.Audit(log, middleware.AuditOptions{}))
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

// auditVictim makes the test binary a program that is killed while it writes an audit file, which it names.
const auditVictim = "MIDDLEWARE_AUDIT_VICTIM"

// TestAuditVictim is no test of its own: it answers calls until it is killed, and prints the ref of each call that was answered.
func TestAuditVictim(t *testing.T) {
	file := os.Getenv(auditVictim)
	if file == "" {
		t.Skip("run by TestNoAcknowledgedRecordIsLostInACrash")
	}
	log, err := middleware.OpenAuditFile(file, middleware.AuditFileOptions{})
	require.NoError(t, err)
	srv := newServer(t, mcpkit.NewTool("x", func(ctx context.Context) string { return mcpkit.CallFrom(ctx).Ref() }))
	srv.Use(middleware.Audit(log, middleware.AuditOptions{}))
	for range 4 {
		go func() { // ends with the program
			for {
				_, _ = os.Stdout.WriteString("ref " + modern(t, srv).toolText(t.Context(), "x") + "\n")
			}
		}()
	}
	select {}
}

func TestNoAcknowledgedRecordIsLostInACrash(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 3 {
		cmd := exec.Command(self, "-test.run=^TestAuditVictim$")
		cmd.Env = append(os.Environ(), auditVictim+"="+file)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		var printed bytes.Buffer
		_, err = io.CopyN(&printed, out, 4096)
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Kill())
		_, _ = io.Copy(&printed, out) // what was answered before the end
		require.Error(t, cmd.Wait())

		log, err := middleware.OpenAuditFile(file, middleware.AuditFileOptions{})
		require.NoError(t, err)
		require.NoError(t, log.Close())
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		written := map[any]bool{}
		for _, record := range lines(t, string(text)) {
			written[record["ref"]] = true
		}
		answered := 0
		for line := range strings.Lines(printed.String()) {
			if ref, ok := strings.CutPrefix(line, "ref "); ok && strings.HasSuffix(ref, "\n") {
				require.True(t, written[strings.TrimSpace(ref)], "the call %s was answered and is not in the file", ref)
				answered++
			}
		}
		require.Greater(t, answered, 100)
	}
}
