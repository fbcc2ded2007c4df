package mcpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
	"github.com/mcpkit/mcpkit-go/transport"
)

// peer is a client that calls the server without a transport.
type peer struct {
	t       testing.TB
	srv     *mcpkit.Server
	session *transport.Session // nil: there is none
	header  transport.Header   // nil: not HTTP
	answer  func(req *jsonrpc.Request) *jsonrpc.Response

	mu   sync.Mutex
	sent []string // what the server sent beside responses, as JSON
}

func (p *peer) Notify(_ context.Context, n *jsonrpc.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, string(jsonrpc.AppendRequest(nil, n)))
	return nil
}

func (p *peer) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	if p.answer == nil {
		return nil, transport.ErrNoServerRequests
	}
	return p.answer(req), nil
}

func (p *peer) Session() *transport.Session { return p.session }
func (p *peer) Header() transport.Header    { return p.header }

// take returns what was sent since the last take.
func (p *peer) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = nil
	return sent
}

// raw sends one message and returns the response as JSON, "" for a notification.
func (p *peer) raw(ctx context.Context, message string) string {
	p.t.Helper()
	resp := p.rpc(ctx, message)
	if resp == nil {
		return ""
	}
	return string(jsonrpc.AppendResponse(nil, resp))
}

func (p *peer) rpc(ctx context.Context, message string) *jsonrpc.Response {
	p.t.Helper()
	msg, bad := jsonrpc.Decode([]byte(message))
	require.Nil(p.t, bad, "the test's own message is malformed: %s", message)
	return p.srv.ServeRPC(ctx, msg.Request, p)
}

// result sends a request and returns its result; an error fails the test.
func (p *peer) result(method, params string) string {
	p.t.Helper()
	resp := p.rpc(p.t.Context(), p.request(method, params))
	require.Nil(p.t, resp.Error, "%s answered with an error", method)
	if resp.Stream != nil {
		var b bytes.Buffer
		require.NoError(p.t, resp.Stream(&b))
		return b.String()
	}
	return string(resp.Result)
}

// fails sends a request and returns its error.
func (p *peer) fails(method, params string) *jsonrpc.Error {
	p.t.Helper()
	resp := p.rpc(p.t.Context(), p.request(method, params))
	require.NotNil(p.t, resp.Error, "%s answered with %s", method, resp.Result)
	return resp.Error
}

func (p *peer) request(method, params string) string {
	if p.session == nil || !protocol.Version(p.session.Version()).Legacy() && method != "initialize" {
		params = withMeta(params)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}`

// withMeta adds the _meta of modern requests.
func withMeta(params string) string {
	if params == "" || params == "{}" {
		return "{" + modernMeta + "}"
	}
	return params[:len(params)-1] + "," + modernMeta + "}"
}

// modern is a client of 2026-07-28.
func modern(t testing.TB, srv *mcpkit.Server) *peer { return &peer{t: t, srv: srv} }

// legacy is a client that has initialized a session of the version.
func legacy(t testing.TB, srv *mcpkit.Server, v protocol.Version) *peer {
	p := &peer{t: t, srv: srv}
	p.session = transport.NewSession("s1", p)
	p.raw(t.Context(), fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"test","version":"1"}}}`, v))
	p.raw(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.Equal(t, string(v), p.session.Version())
	return p
}

func newServer(t testing.TB, service any, opts ...mcpkit.Option) *mcpkit.Server {
	t.Helper()
	srv, err := mcpkit.New(service, opts...)
	require.NoError(t, err)
	return srv
}

// rawSchemas is the option of servers with schemas that are written by hand.
var rawSchemas = mcpkit.RawSchemas(rawschema.Compile)

// member returns a member of a JSON object, by path.
func member(t testing.TB, object string, path ...string) string {
	t.Helper()
	raw := json.RawMessage(object)
	for _, name := range path {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &m), "%s in %s", name, raw)
		raw = m[name]
	}
	return string(raw)
}

// acknowledged returns how a server acknowledges a subscription with the filter, which ends at once.
func acknowledged(t *testing.T, srv *mcpkit.Server, filter string) string {
	t.Helper()
	p := modern(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Nil(t, p.rpc(ctx, p.request("subscriptions/listen", `{"notifications":`+filter+`}`)).Error)
	return p.take()[0]
}

// before makes middleware that calls f before each call.
func before(f func(call *mcpkit.Call)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			f(call)
			return next(ctx, call)
		}
	}
}

var _ = flag.Bool("update", false, "write what the server says into the transcripts")

// Library is the service of the transcripts.
type Library struct {
	_ mcpkit.Info `name:"library" version:"1.0.0"`
	_ struct {
		Find   mcpkit.Tool     `hints:"readonly"`
		Count  mcpkit.Tool     `params:"upto"`
		Lend   mcpkit.Tool     `hints:"additive"`
		Book   mcpkit.Resource `uri:"book://{isbn}" mime:"text/plain" cache:"60s,public"`
		Rules  mcpkit.Resource `uri:"library://rules"`
		Review mcpkit.Prompt   `params:"title,tone?"`
	}
}

// FindInput says what to look for.
type FindInput struct {
	// Part of the title.
	Title string `json:"title" validate:"required,min=2"`
	Limit int    `json:"limit,omitempty" default:"3" validate:"min=1,max=10"`
}

// A Found book.
type Found struct {
	Title string `json:"title"`
}

// Find finds books.
func (Library) Find(in FindInput) []Found {
	books := []Found{{"Dune"}, {"Dune Messiah"}, {"Emma"}}
	var found []Found
	for _, b := range books {
		if strings.Contains(b.Title, in.Title) && len(found) < in.Limit {
			found = append(found, b)
		}
	}
	return found
}

// Count counts, and tells how far it is.
func (Library) Count(call *mcpkit.Call, log *slog.Logger, upto int) int {
	for i := range upto {
		call.Progress(float64(i+1), float64(upto), "")
		log.Info("counted", "number", i+1)
	}
	return upto
}

// Lend lends a book, if the reader confirms.
func (Library) Lend(ctx context.Context, in struct {
	Title string `json:"title" validate:"required"`
}) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Lend "+in.Title+"?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "not lent", nil
	}
	return "lent " + in.Title, nil
}

// Book returns a book.
func (Library) Book(isbn string) (string, error) {
	if isbn != "978" {
		return "", mcpkit.ErrNotFound
	}
	return "A beginning is the time for taking the most delicate care.", nil
}

// Rules returns the rules as data.
func (Library) Rules() map[string]int { return map[string]int{"days": 14} }

// Review asks for a review.
func (Library) Review(title, tone string) string { return "Review " + title + " " + tone + "." }

// TestTranscripts sends the messages of a client and compares those of the server, for each file.
// The first lines of a file explain it. The folder is the family; a client of the folder "legacy"
// begins with initialize itself.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/transcripts/"), ".txtar"), func(t *testing.T) {
			mcptest.New(t, &Library{}, mcpkit.PageSize(2)).Replay(file)
		})
	}
}
