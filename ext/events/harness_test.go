package events_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// A mail is what the events of these tests tell.
type mail struct {
	ID   string    `json:"id"`
	From string    `json:"from"`
	At   time.Time `json:"at,omitzero"`
}

func (m mail) EventID() string { return m.ID }

func (m mail) EventTime() time.Time {
	if m.At.IsZero() {
		return time.Now()
	}
	return m.At
}

// A query is the arguments of subscriptions to mail.
type query struct {
	From string `json:"from,omitempty" validate:"max=10"`
	Box  string `json:"box,omitempty"`
}

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func newArrived() *events.Type[mail, query] {
	return events.NewType("mail_arrived", "A mail has arrived.", func(_ context.Context, m mail, q query) bool {
		return q.From == "" || q.From == m.From
	})
}

// An office has a server with events.
type office struct {
	t       *testing.T
	srv     *mcpkit.Server
	arrived *events.Type[mail, query]
	inbox   *inbox
	hooks   *receiver
}

// An inbox is a service whose method is an event.
type inbox struct {
	_ struct {
		Knocked mcpkit.Event `scopes:"door"`
	}
	knocks chan mail
	opened int
	kept   int
}

// Knocked tells who is at the door.
func (i *inbox) Knocked(ctx context.Context, q query) iter.Seq2[mail, error] {
	return func(yield func(mail, error) bool) {
		i.opened++
		for {
			select {
			case m := <-i.knocks:
				if !yield(m, nil) {
					return
				}
				i.kept++
			case <-ctx.Done():
				return
			}
		}
	}
}

// open starts a server with an engine; nil for none.
func open(t *testing.T, engine fleet.Engine, opts ...events.Option) *office {
	t.Helper()
	o := &office{t: t, arrived: newArrived(), inbox: &inbox{knocks: make(chan mail)}, hooks: newReceiver()}
	all := []mcpkit.Option{
		mcpkit.Name("office", "1"), mcpkit.Authenticated(),
		events.New(append([]events.Option{o.arrived, events.Receivers(o.hooks)}, opts...)...),
	}
	if engine != nil {
		all = append(all, mcpkit.Fleet(engine), mcpkit.StateKeys([]byte(strings.Repeat("k", 32))))
	}
	var err error
	o.srv, err = mcpkit.New(o.inbox, all...)
	require.NoError(t, err)
	require.NoError(t, o.srv.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, o.srv.Close()) })
	return o
}

// emit emits mails with the IDs.
func (o *office) emit(ids ...string) {
	o.t.Helper()
	for _, id := range ids {
		require.NoError(o.t, o.arrived.Emit(o.t.Context(), mail{ID: id, From: "ann"}))
	}
}

// A peer is a client that calls the server without a transport.
type peer struct {
	*office
	as      *oauth.Principal
	session *transport.Session
	sent    chan string // notifications
}

var ann = &oauth.Principal{Subject: "ann", Scopes: []string{"door"}}

// as returns a client of 2026-07-28.
func (o *office) as(p *oauth.Principal) *peer {
	return &peer{office: o, as: p, sent: make(chan string, 1000)}
}

func (p *peer) Notify(_ context.Context, n *jsonrpc.Request) error {
	p.sent <- string(jsonrpc.AppendRequest(nil, n))
	return nil
}

func (p *peer) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}
func (p *peer) Session() *transport.Session { return p.session }
func (p *peer) Header() transport.Header    { return nil }

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func (p *peer) rpc(ctx context.Context, method, params string) *jsonrpc.Response {
	p.t.Helper()
	if p.session == nil {
		params = strings.Replace(strings.TrimSuffix(params, "}")+","+meta+"}", "{,", "{", 1)
	}
	msg, bad := jsonrpc.Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params))
	require.Nil(p.t, bad, "the test's own message is malformed: %s", params)
	return p.srv.ServeRPC(oauth.NewContext(ctx, p.as), msg.Request, p)
}

// result sends a request and returns its result.
func (p *peer) result(method, params string) string {
	p.t.Helper()
	resp := p.rpc(p.t.Context(), method, params)
	require.Nil(p.t, resp.Error, "%s", method)
	return string(resp.Result)
}

// fails sends a request and returns its error: the code and the data.
func (p *peer) fails(method, params string) string {
	p.t.Helper()
	resp := p.rpc(p.t.Context(), method, params)
	require.NotNil(p.t, resp.Error, "%s answered with %s", method, resp.Result)
	return fmt.Sprint(resp.Error.Code, " ", string(resp.Error.Data))
}

// stream opens a stream in a bubble, and returns a function that ends it and returns the result.
func (p *peer) stream(params string) (end func() string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan string, 1)
	go func() { // ends with end
		resp := p.rpc(ctx, events.MethodStream, params)
		done <- fmt.Sprint(resp.Error, " ", string(resp.Result))
	}()
	synctest.Wait()
	return func() string {
		cancel()
		return <-done
	}
}

// take returns the notifications since the last take.
func (p *peer) take() (all []string) {
	synctest.Wait()
	for len(p.sent) > 0 {
		all = append(all, strings.TrimPrefix(<-p.sent, `{"jsonrpc":"2.0","method":"notifications/events/`))
	}
	return all
}

// member returns a member of an object, as JSON.
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

// A receiver receives webhooks without a network. It echoes challenges.
type receiver struct {
	mu     sync.Mutex
	got    []*http.Request // with their bodies; guarded by mu
	bodies []string        // guarded by mu
	answer func(r *http.Request, body string) (status int, response string)
}

func newReceiver() *receiver { return &receiver{} }

// RoundTrip implements http.RoundTripper.
func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	body := string(raw)
	r.mu.Lock()
	r.got, r.bodies = append(r.got, req), append(r.bodies, body)
	answer := r.answer
	r.mu.Unlock()
	w := httptest.NewRecorder()
	status, response := 200, ""
	if answer != nil {
		status, response = answer(req, body)
	}
	if response == "" && strings.Contains(body, `"type":"verification"`) {
		response = body
	}
	w.WriteHeader(status)
	_, _ = w.WriteString(response)
	return w.Result(), nil
}

// take returns the bodies since the last take.
func (r *receiver) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	bodies := r.bodies
	r.bodies = nil
	return bodies
}
