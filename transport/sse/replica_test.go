package sse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
)

// A member is a server of a fleet that answers with its name, its caller and the header fields that
// came with the request.
type member struct {
	f    *fleet.Fleet
	name string
}

func (m *member) Fleet() *fleet.Fleet { return m.f }

func (m *member) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	var answer any = oauth.FromContext(ctx)
	if req.Method != "whoami" {
		answer = map[string]any{"at": m.name, "user": oauth.FromContext(ctx).Key(), "trace": peer.Header().Get("X-Trace"), "token": peer.Header().Get("Authorization"), "params": req.Params}
	}
	result, err := json.Marshal(answer)
	if err != nil {
		return &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "%v", err)}
	}
	return &jsonrpc.Response{Result: result}
}

type sseReplica struct {
	*member
	web *httptest.Server
	h   *sse.Handler
}

func seal(id string, plain []byte) []byte { return append([]byte(id+"\n"), plain...) }

func unseal(id string, sealed []byte) ([]byte, error) {
	plain, ok := strings.CutPrefix(string(sealed), id+"\n")
	if !ok {
		return nil, errors.New("not sealed for " + id)
	}
	return []byte(plain), nil
}

func startMember(t *testing.T, name string, engine fleet.Engine) *sseReplica {
	t.Helper()
	f := fleet.New(engine, fleet.Options{Seal: seal, Open: unseal, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, f.Start(t.Context()))
	r := &sseReplica{member: &member{f, name}}
	r.h = sse.NewHandler(r.member, &sse.Options{Logger: slog.New(slog.DiscardHandler)})
	r.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if user := req.Header.Get("User"); user != "" {
			p := &oauth.Principal{Subject: user, Scopes: req.Header["Scope"]}
			p.Expires, _ = http.ParseTime(req.Header.Get("Until"))
			req = req.WithContext(oauth.NewContext(req.Context(), p))
		}
		r.h.ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		r.h.Close()
		r.web.CloseClientConnections()
		r.web.Close()
		require.NoError(t, f.Close())
	})
	return r
}

// twoMembers starts two replicas on an engine.
func twoMembers(t *testing.T) (a, b *sseReplica, engine *fleet.Local) {
	engine = fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return startMember(t, "a", engine.Open()), startMember(t, "b", engine.Open()), engine
}

// at returns a client whose messages go to another replica.
func (c *client) at(r *sseReplica) *client {
	d := *c
	d.url = r.web.URL + c.url[strings.Index(c.url, "/sse?"):]
	return &d
}

func (c *client) says(t *testing.T, message string) int {
	t.Helper()
	status, err := c.post([]byte(message), c.header)
	require.NoError(t, err)
	return status
}

func TestMessagesReachTheReplicaWithTheStream(t *testing.T) {
	a, b, _ := twoMembers(t)
	c := open(t, a.web.URL, http.Header{"User": {"ann"}})
	defer c.Close()
	there := c.at(b)
	there.header = http.Header{"User": {"ann"}, "X-Trace": {"t1"}, "Authorization": {"Bearer secret"}, "Cookie": {"k=v"}}
	require.Equal(t, 202, there.says(t, `{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":1}}`))
	got, err := c.Receive()
	require.NoError(t, err)
	user, err := json.Marshal((&oauth.Principal{Subject: "ann"}).Key())
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"at":"a","user":%s,"trace":"t1","token":"","params":{"n":1}}}`,
		user), string(got), "without the token")

	for i := 2; i < 60; i++ { // from both, in order
		at := there
		if i%3 == 0 {
			at = c
		}
		require.Equal(t, 202, at.says(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x","params":{"n":%d}}`, i, i)))
		got, err := c.Receive()
		require.NoError(t, err)
		require.Contains(t, string(got), fmt.Sprintf(`"id":%d,`, i))
	}
}

// Each POST is authenticated. Another token of the same principal may have other scopes, at whatever
// replica it arrives.
func TestForwardedMessagesHaveTheScopesOfTheirToken(t *testing.T) {
	a, b, _ := twoMembers(t)
	c := open(t, a.web.URL, http.Header{"User": {"ann"}, "Scope": {"read", "write"}})
	defer c.Close()
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for i, header := range []http.Header{
		{"User": {"ann"}, "Scope": {"read"}, "Until": {until.Format(http.TimeFormat)}},
		{"User": {"ann"}, "Scope": {"read", "write", "delete"}, "Until": {until.Format(http.TimeFormat)}},
		{"User": {"ann"}, "Until": {until.Format(http.TimeFormat)}},
	} {
		for _, at := range []*client{c, c.at(b)} {
			at := *at
			at.header = header
			require.Equal(t, 202, at.says(t, `{"jsonrpc":"2.0","id":1,"method":"whoami"}`))
			got, err := c.Receive()
			require.NoError(t, err)
			var m struct{ Result oauth.Principal }
			require.NoError(t, json.Unmarshal(got, &m), "%s", got)
			require.Equal(t, oauth.Principal{Subject: "ann", Scopes: header["Scope"], Expires: until}, m.Result, "%d, %s", i, at.url)
		}
	}
}

// TestForwardedMessagesKeepTheirOrder sends notifications without waiting for what they do.
func TestForwardedMessagesKeepTheirOrder(t *testing.T) {
	a, b, _ := twoMembers(t)
	c := open(t, a.web.URL, nil)
	defer c.Close()
	for i := range 250 {
		require.Equal(t, 202, c.at(b).says(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, i)))
	}
	seen := map[string]bool{}
	for range 250 {
		got, err := c.Receive()
		require.NoError(t, err)
		var m struct{ ID json.Number }
		require.NoError(t, json.Unmarshal(got, &m))
		require.False(t, seen[m.ID.String()], "handled twice: %s", m.ID)
		seen[m.ID.String()] = true
	}
}

func TestForeignSessionsAreNotFoundAtAnotherReplica(t *testing.T) {
	a, b, engine := twoMembers(t)
	c := open(t, a.web.URL, http.Header{"User": {"ann"}})
	there := c.at(b)
	for name, header := range map[string]http.Header{"another principal": {"User": {"bob"}}, "no principal": nil} {
		there.header = header
		require.Equal(t, 404, there.says(t, ping), name)
	}
	unknown := *there
	unknown.header = http.Header{"User": {"ann"}}
	unknown.url = b.web.URL + "/sse?sessionId=ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	require.Equal(t, 404, unknown.says(t, ping))

	key := fleet.Digest(c.url[strings.Index(c.url, "=")+1:])
	stored, err := engine.Get(t.Context(), "sse-sessions", key)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	there.header = http.Header{"User": {"ann"}}
	require.Eventually(t, func() bool { return there.says(t, ping) == 404 }, time.Minute, time.Millisecond, "the session has ended")

	// A program that writes to the store can neither change a record nor use that of another session.
	stored.Data = []byte(strings.ReplaceAll(string(stored.Data), "ann", "bob"))
	d := open(t, a.web.URL, http.Header{"User": {"ann"}})
	defer d.Close()
	other := fleet.Digest(d.url[strings.Index(d.url, "=")+1:])
	now, err := engine.Get(t.Context(), "sse-sessions", other)
	require.NoError(t, err)
	_, err = engine.Update(t.Context(), "sse-sessions", fleet.Record{Key: other, Data: stored.Data, Revision: now.Revision, TTL: time.Hour})
	require.NoError(t, err)
	require.Equal(t, 503, d.at(b).says(t, ping))
}

func TestSessionsOfADeadReplicaAreNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		alive := fleet.New(engine.Open(), fleet.Options{Seal: seal, Open: unseal, Logger: quiet})
		require.NoError(t, alive.Start(t.Context()))
		defer alive.Close()
		dead := fleet.New(engine.Open(), fleet.Options{Seal: seal, Open: unseal, Logger: quiet})
		require.NoError(t, dead.Start(t.Context()))
		here := serveWired(t, &member{alive, "alive"}, &sse.Options{})
		there := serveWired(t, &member{dead, "dead"}, &sse.Options{SessionIdle: -1})
		url, _ := begin(t, there)
		require.Equal(t, 202, say(t, here, url, ping))
		require.NoError(t, dead.Close()) // it shows no sign of life
		time.Sleep(20 * time.Second)
		require.Equal(t, 404, say(t, here, url, ping))
	})
}

// A deaf engine loses all messages of the bus.
type deaf struct{ fleet.Engine }

func (deaf) Publish(context.Context, string, []byte) error { return nil }

func TestMessagesArriveAlthoughTheBusLosesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		a := fleet.New(deaf{engine.Open()}, fleet.Options{Seal: seal, Open: unseal, Logger: quiet})
		b := fleet.New(deaf{engine.Open()}, fleet.Options{Seal: seal, Open: unseal, Logger: quiet})
		require.NoError(t, a.Start(t.Context()))
		require.NoError(t, b.Start(t.Context()))
		defer b.Close()
		defer a.Close()
		url, lines := begin(t, serveWired(t, &member{a, "a"}, &sse.Options{KeepAlive: -1}))
		begun := time.Now()
		require.Equal(t, 202, say(t, serveWired(t, &member{b, "b"}, &sse.Options{}), url, ping))
		require.Equal(t, "event: message\n", line(t, lines))
		require.LessOrEqual(t, time.Since(begun), 10*time.Second)
	})
}

// A brittle engine fails while it is down.
type brittle struct {
	fleet.Engine
	down atomic.Bool
}

func (e *brittle) Get(ctx context.Context, set, key string) (fleet.Record, error) {
	if e.down.Load() {
		return fleet.Record{}, io.ErrUnexpectedEOF
	}
	return e.Engine.Get(ctx, set, key)
}

func (e *brittle) Create(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	if e.down.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return e.Engine.Create(ctx, set, r)
}

func TestWithoutTheStoreOnlyOwnSessionsGoOn(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	defer engine.Close()
	store := &brittle{Engine: engine.Open()}
	a, b := startMember(t, "a", store), startMember(t, "b", engine.Open())
	own, foreign := open(t, a.web.URL, nil), open(t, b.web.URL, nil)
	defer own.Close()
	defer foreign.Close()
	store.down.Store(true)
	require.Equal(t, 202, own.says(t, ping))
	_, err := own.Receive()
	require.NoError(t, err)
	require.Equal(t, 503, foreign.at(a).says(t, ping))
	resp, err := http.Get(a.web.URL + "/sse")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 503, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
}

func TestForwardedMessagesAreLimited(t *testing.T) {
	a, b, _ := twoMembers(t)
	c := open(t, a.web.URL, nil)
	defer c.Close()
	big := `{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`
	require.Equal(t, http.StatusRequestEntityTooLarge, c.at(b).says(t, big))
	require.Equal(t, 202, c.at(b).says(t, `{"jsonrpc"`))
	got, err := c.Receive()
	require.NoError(t, err)
	require.Contains(t, string(got), `"code":-32700`)
}

// A load balancer sends messages to another replica, and again after eight hours.
func TestMessagesReachTheReplicaWithTheStreamForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		var clients []*http.Client
		for _, name := range []string{"a", "b"} {
			f := fleet.New(engine.Open(), fleet.Options{Seal: seal, Open: unseal, Logger: quiet})
			require.NoError(t, f.Start(t.Context()))
			defer f.Close()
			clients = append(clients, serveWired(t, &member{f, name}, &sse.Options{KeepAlive: -1, SessionIdle: -1}))
		}
		url, lines := begin(t, clients[0])
		for n := range 2 {
			for i := range 3 - n { // fewer each time
				require.Equal(t, 202, say(t, clients[1], url, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d.%d","method":"x"}`, n, i)))
				answered := make(chan string, 1)
				go func() { // ends with the line
					_, _ = lines.ReadString('\n')
					text, _ := lines.ReadString('\n')
					_, _ = lines.ReadString('\n')
					answered <- text
				}()
				select {
				case text := <-answered:
					require.Contains(t, text, fmt.Sprintf(`"id":"%d.%d"`, n, i))
				case <-time.After(time.Minute):
					require.Fail(t, "a message was lost", "%d.%d", n, i)
				}
			}
			time.Sleep(8 * time.Hour)
		}
	})
}

// A vague engine renews a record once without saying so.
type vague struct {
	fleet.Engine
	updates atomic.Int64
}

func (e *vague) Update(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	revision, err := e.Engine.Update(ctx, set, r)
	if set == "sse-sessions" && e.updates.Add(1) == 1 {
		return 0, context.DeadlineExceeded
	}
	return revision, err
}

func TestSessionsAreRenewedAfterAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		var clients []*http.Client
		for _, name := range []string{"a", "b"} {
			f := fleet.New(&vague{Engine: engine.Open()}, fleet.Options{Seal: seal, Open: unseal, Logger: quiet})
			require.NoError(t, f.Start(t.Context()))
			defer f.Close()
			clients = append(clients, serveWired(t, &member{f, name}, &sse.Options{KeepAlive: -1, SessionIdle: -1}))
		}
		url, _ := begin(t, clients[0])
		time.Sleep(10 * time.Hour)
		require.Equal(t, 202, say(t, clients[1], url, ping))
	})
}
