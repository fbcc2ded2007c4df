package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

var key = []byte("0123456789abcdef0123456789abcdef")

// running is the running program with a client.
type running struct {
	t       *testing.T
	app     *app
	url     string
	file    string
	spans   *kept
	figures *measured
	log     *bytes.Buffer // the log of the program; read it only after the end
	http    *http.Client
	stop    context.CancelFunc
	stopped chan error
}

// kept keeps the spans after the program has ended.
type kept struct{ *tracetest.InMemoryExporter }

func (kept) Shutdown(context.Context) error { return nil }

// measured counts the measurements of each metric, by name.
type measured struct {
	meter
	counts map[string]uint64
}

func (m *measured) Export(_ context.Context, data *metricdata.ResourceMetrics) error {
	m.counts = map[string]uint64{}
	for _, scope := range data.ScopeMetrics {
		for _, metric := range scope.Metrics {
			for _, point := range metric.Data.(metricdata.Histogram[float64]).DataPoints {
				m.counts[metric.Name] += point.Count
			}
		}
	}
	return nil
}

func run(t *testing.T, change func(*Orders)) *running {
	r := &running{
		t: t, file: filepath.Join(t.TempDir(), "audit.jsonl"), spans: &kept{tracetest.NewInMemoryExporter()},
		http: &http.Client{Transport: &http.Transport{}}, stopped: make(chan error, 1),
		figures: &measured{}, log: &bytes.Buffer{},
	}
	logger := slog.New(slog.NewJSONHandler(r.log, nil))
	a, err := newApp(config{key: key, audit: r.file, logger: logger, spans: r.spans, figures: r.figures})
	require.NoError(t, err)
	r.app = a
	change(a.service)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.url = "http://" + ln.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() { r.stopped <- a.serve(ctx, ln) }() // ends with ctx
	t.Cleanup(r.http.CloseIdleConnections)
	return r
}

// end stops the program and checks that it ends without an error.
func (r *running) end() {
	r.stop()
	require.NoError(r.t, <-r.stopped)
}

func token(subject, scope string) string {
	token, _ := newToken(key, subject, scope) // cannot fail: the key is long enough
	return token
}

// call calls a tool and returns the status and the body of the response.
func (r *running) call(token, tool, args string) (int, string) {
	r.t.Helper()
	resp, text := r.send(token, tool, args)
	return resp.StatusCode, text
}

func (r *running) send(token, tool, args string) (*http.Response, string) {
	r.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `,"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}`
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+"/mcp", strings.NewReader(body))
	require.NoError(r.t, err)
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + token},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool},
	}
	return r.do(req)
}

func (r *running) get(path string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url+path, nil)
	require.NoError(r.t, err)
	resp, text := r.do(req)
	return resp.StatusCode, text
}

func (r *running) do(req *http.Request) (*http.Response, string) {
	r.t.Helper()
	resp, err := r.http.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp, string(text)
}

func TestToolsNeedScopes(t *testing.T) {
	var seen []string
	r := run(t, func(o *Orders) { o.seen = func(what string) { seen = append(seen, what) } })
	defer r.end()
	valid := token("ann", "")
	for name, bad := range map[string]string{
		"none": "", "no token": "x", "another key": sign([]byte("another"), claims{Subject: "ann", Expires: time.Now().Add(time.Hour).Unix()}),
		"over": sign(key, claims{Subject: "ann", Expires: time.Now().Unix()}), "nobody's": sign(key, claims{Expires: time.Now().Add(time.Hour).Unix()}),
		"unsigned": strings.Join(append(strings.Split(valid, ".")[:2], ""), "."),
	} {
		status, _ := r.call(bad, "find", `{"id":"A1"}`)
		require.Equal(t, 401, status, name)
	}
	require.Empty(t, seen)
	status, reply := r.call(valid, "find", `{"id":"A1"}`)
	require.Equal(t, 200, status)
	require.Contains(t, reply, "1999")
	_, reply = r.call(valid, "refund", `{"id":"A1","card":"4111"}`)
	require.Contains(t, reply, `unknown tool \"refund\"`, "a tool without the scope is unknown")
	_, reply = r.call(token("bob", "orders:refund"), "refund", `{"id":"A1","card":"4111"}`)
	require.Contains(t, reply, "refunded A1")
	require.Equal(t, []string{"find", "refund"}, seen)
}

func TestCallsAreLimitedCachedAuditedAndTraced(t *testing.T) {
	finds := 0
	r := run(t, func(o *Orders) {
		o.seen = func(what string) {
			if what == "find" {
				finds++
			}
		}
	})
	bob := token("bob", "orders:refund")
	for range 3 {
		_, reply := r.call(token("ann", ""), "find", `{"id":"A2"}`)
		require.Contains(t, reply, "500")
	}
	require.Equal(t, 1, finds, "the result is cached")
	var last string
	var resp *http.Response
	for range 3 {
		resp, last = r.send(bob, "refund", `{"id":"A2","card":"4111222233334444"}`)
	}
	require.Contains(t, last, "too many calls; try again in")
	require.Contains(t, last, "retryAfterMs")
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	r.end()

	text, err := os.ReadFile(r.file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "4111222233334444")
	var outcomes []string
	for line := range strings.Lines(string(text)) {
		var record struct {
			Event, Name, Outcome, Trace string
			Principal                   struct{ Subject string }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", record.Trace)
		if record.Event == "end" {
			outcomes = append(outcomes, record.Principal.Subject+" "+record.Name+" "+record.Outcome)
		}
	}
	require.Equal(t, []string{"ann find ok", "ann find ok", "ann find ok", "bob refund ok", "bob refund error", "bob refund limited"}, outcomes)

	spans := r.spans.GetSpans()
	require.Len(t, spans, 6, "shutting down flushes the spans")
	require.Equal(t, "tools/call find", spans[0].Name)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", spans[0].SpanContext.TraceID().String())
	require.Equal(t, map[string]uint64{"mcp.server.operation.duration": 6}, r.figures.counts)

	var logged []string
	for line := range strings.Lines(r.log.String()) {
		var record struct{ Msg, Name, Outcome, Principal, Trace string }
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		if record.Msg == "mcp call" {
			require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", record.Trace)
			logged = append(logged, record.Principal+" "+record.Name+" "+record.Outcome)
		}
	}
	require.Equal(t, outcomes, logged)
	require.NotContains(t, r.log.String(), "4111222233334444")
}

func TestTheAddressIsLogged(t *testing.T) {
	r := run(t, func(*Orders) {})
	r.end()
	line, _, _ := strings.Cut(r.log.String(), "\n")
	var record struct{ Msg, Addr, Path string }
	require.NoError(t, json.Unmarshal([]byte(line), &record))
	require.Equal(t, "serving", record.Msg)
	require.Equal(t, r.url+"/mcp", "http://"+record.Addr+record.Path)
	require.Contains(t, line, `"build":`)
}

func TestHealthChecksNeedNoToken(t *testing.T) {
	var down error
	r := run(t, func(o *Orders) { o.down = func() error { return down } })
	defer r.end()
	status, _ := r.get("/livez")
	require.Equal(t, 200, status)
	status, _ = r.get("/readyz")
	require.Equal(t, 200, status)
	down = errors.New("10.0.0.7 is gone")
	status, body := r.get("/readyz")
	require.Equal(t, 503, status)
	require.Equal(t, "{\"status\":\"not ready\",\"failing\":[\"orders\"]}\n", body)
	r.app.ready.Drain()
	_, body = r.get("/readyz")
	require.Equal(t, "{\"status\":\"draining\"}\n", body)
}

func TestShutdownWaitsForCallsInFlight(t *testing.T) {
	began, wait := make(chan struct{}), make(chan struct{})
	r := run(t, func(o *Orders) {
		o.wait = wait
		o.seen = func(what string) {
			if what == "refund" {
				close(began)
			}
		}
	})
	replied := make(chan string, 1)
	go func() { // ends with the answer
		_, reply := r.call(token("bob", "orders:refund"), "refund", `{"id":"A1","card":"4111"}`)
		replied <- reply
	}()
	<-began
	r.stop()
	for status := 200; status != http.StatusServiceUnavailable; { // until the shutdown has begun
		status, _ = r.call(token("ann", ""), "find", `{"id":"A1"}`)
	}
	select {
	case err := <-r.stopped:
		require.Fail(t, "the program ended before the call", "%v", err)
	case reply := <-replied:
		require.Fail(t, "the call was aborted", reply)
	default:
	}
	close(wait)
	require.Contains(t, <-replied, "refunded A1")
	require.NoError(t, <-r.stopped)
	text, err := os.ReadFile(r.file)
	require.NoError(t, err)
	require.Contains(t, string(text), `"outcome":"ok"`)
}

func TestAShortKeyIsRefused(t *testing.T) {
	_, err := newApp(config{key: []byte("short")})
	require.EqualError(t, err, "ops: the key must have at least 32 random bytes; set OPS_KEY")
	_, err = newToken([]byte("short"), "ann", "")
	require.EqualError(t, err, "ops: the key must have at least 32 random bytes; set OPS_KEY")
}
