package events

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A script is a server whose n-th response to a method is line n of its text: a result, an error, or
// what happens on a stream. After the last line a stream stays open, and other methods repeat it.
type script struct {
	lines      map[string][]string
	extensions string // that the server declares; "" for this one

	mu   sync.Mutex
	seen []string // method, seconds since from, and params without _meta; guarded by mu
	from time.Time
}

func (s *script) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	result := func(text string) *jsonrpc.Response { return &jsonrpc.Response{ID: req.ID, Result: []byte(text)} }
	if req.Method == "server/discover" {
		return result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"extensions":` + cmp.Or(s.extensions, `{"`+ID+`":{}}`) + `},"ttlMs":0,"cacheScope":"public"}`)
	}
	s.mu.Lock()
	n := 0
	for _, line := range s.seen {
		if strings.HasPrefix(line, req.Method+" ") {
			n++
		}
	}
	params := "{"
	for name, value := range jsonx.Members(req.Params) {
		if !jsonx.IsString(name, "_meta") {
			params += fmt.Sprintf("%s:%s,", name, value)
		}
	}
	s.seen = append(s.seen, fmt.Sprintf("%s %.1f %s}", req.Method, time.Since(s.from).Seconds(), strings.TrimSuffix(params, ",")))
	lines := s.lines[req.Method]
	s.mu.Unlock()
	switch {
	case n >= len(lines) && req.Method == MethodStream:
		<-ctx.Done()
		return nil
	case lines == nil:
		return result(`{"resultType":"complete"}`)
	}
	line := lines[min(n, len(lines)-1)]
	for text := range strings.SplitSeq(line, "; ") {
		name, rest, _ := strings.Cut(text, " ")
		switch name {
		case "fail":
			return &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: rest}}
		case "refuse":
			return &jsonrpc.Response{ID: req.ID, Error: &jsonrpc.Error{Code: -32012, Message: rest}}
		case "wait":
			d, _ := time.ParseDuration(rest)
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return nil
			}
		case "end":
		case "hang":
			<-ctx.Done()
			return nil
		default:
			if req.Method != MethodStream {
				return result(text)
			}
			n := &jsonrpc.Request{Method: "notifications/events/" + name, Params: []byte(`{"_meta":{"` + protocol.MetaSubscriptionID + `":` + req.ID.String() + `}` + rest + `}`)}
			if peer.Notify(ctx, n) != nil {
				return nil
			}
		}
	}
	return result(`{"resultType":"complete"}`)
}

// follow runs a test with a client of a server in a bubble.
func follow(t *testing.T, lines map[string][]string, test func(t *testing.T, s *script, c *client.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{lines: lines, from: time.Now()}
		c, err := client.Dial(t.Context(), s, client.Logger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		require.NoError(t, err)
		test(t, s, c)
		require.NoError(t, c.Close())
	})
}

func occurrence(id, cursor string) string {
	if cursor != "" {
		cursor = `,"cursor":"` + cursor + `"`
	}
	return `"eventId":"` + id + `","name":"n","timestamp":"2026-11-28T10:00:00Z","data":{}` + cursor
}

// heard returns the first n values of a feed.
func heard(feed iter.Seq2[*Occurrence, error], n int) string {
	var all []string
	for e, err := range feed {
		text := fmt.Sprint(err)
		if err == nil {
			text = e.EventID
			if e.Cursor != nil {
				text += " at " + *e.Cursor
			}
		}
		if all = append(all, text); len(all) == n {
			break
		}
	}
	return strings.Join(all, "\n")
}

const gap = "events: some may be missing"

func TestPolls(t *testing.T) {
	poll := func(cursor, rest string, events ...string) string {
		return `{"resultType":"complete","events":[` + strings.Join(events, ",") + `],"cursor":"` + cursor + `","truncated":false,"hasMore":false` + rest + `}`
	}
	follow(t, map[string][]string{MethodPoll: {
		poll("c1", `,"nextPollMs":10`),
		poll("c2", `,"nextPollMs":60000`, "{"+occurrence("e1", "")+"}"),
		"fail the upstream is down",
		strings.Replace(poll("c3", "", "{"+occurrence("e2", "")+"}", "{"+occurrence("e3", "")+"}"), `"hasMore":false`, `"hasMore":true`, 1),
		strings.Replace(poll("c4", "", "{"+occurrence("e4", "")+"}"), `"truncated":false`, `"truncated":true`, 1),
		"refuse no longer",
	}}, func(t *testing.T, s *script, c *client.Client) {
		feed, err := Follow(t.Context(), c, Poll, "n", map[string]int{"a": 1}, Position{MaxAgeMs: new(int64(5000))})
		require.NoError(t, err)
		require.Equal(t, "e1 at c2\ne2 at c2\ne3 at c3\n"+gap+"\ne4 at c4\nclient: events/poll: no longer (code -32012)", heard(feed, 7))
		const params = `{"name":"n","arguments":{"a":1},"cursor":%s,"maxAgeMs":5000}`
		require.Equal(t, []string{
			"events/poll 0.0 " + fmt.Sprintf(params, "null"),
			"events/poll 1.0 " + fmt.Sprintf(params, `"c1"`), // not after the 10 ms that the server says
			"events/poll 61.0 " + fmt.Sprintf(params, `"c2"`),
			"events/poll 62.0 " + fmt.Sprintf(params, `"c2"`), // after the failure
			"events/poll 62.0 " + fmt.Sprintf(params, `"c3"`), // since there are more
			"events/poll 63.0 " + fmt.Sprintf(params, `"c4"`),
		}, s.seen)
	})
}

func TestStreams(t *testing.T) {
	follow(t, map[string][]string{
		MethodList: {`{"resultType":"complete","events":[{"name":"n","delivery":["webhook","poll","push"]}]}`},
		MethodStream: {
			`active ,"cursor":"c1","truncated":false; event ,` + occurrence("e1", "c2") + `; wait 50s; heartbeat ,"cursor":"c3"; wait 50s; heartbeat ,"cursor":"c4"; hang`,
			`fail the server restarts`,
			`active ,"cursor":"c5","truncated":true; event ,` + occurrence("e2", "c6") + `; end`,
			`active ,"cursor":"c6"; error ,"error":{"code":-32603,"message":"late"}; active ,"cursor":"c7","truncated":true; terminated ,"error":{"code":-32011,"message":"gone"}; end`,
		}}, func(t *testing.T, s *script, c *client.Client) {
		feed, err := Follow(t.Context(), c, "", "n", nil, Position{})
		require.NoError(t, err)
		require.Equal(t, strings.Join([]string{
			"e1 at c2", gap, "e2 at c6", gap + ": late (code -32603)", gap,
			"events: the server ended the subscription: gone (code -32011)",
		}, "\n"), heard(feed, 7))
		require.Equal(t, []string{
			`events/list 0.0 {}`,
			`events/stream 0.0 {"name":"n","cursor":null}`,
			`events/stream 161.0 {"name":"n","cursor":"c4"}`, // after 60 seconds without a heartbeat
			`events/stream 163.0 {"name":"n","cursor":"c4"}`,
			`events/stream 164.0 {"name":"n","cursor":"c6"}`,
		}, s.seen)
	})
}

func TestAStreamWithoutCursorsThatBreaksHasAGap(t *testing.T) {
	line := "active ; event ," + occurrence("e1", "") + "; end"
	follow(t, map[string][]string{MethodStream: {line, line}}, func(t *testing.T, s *script, c *client.Client) {
		feed, err := Follow(t.Context(), c, Push, "n", nil, Position{})
		require.NoError(t, err)
		require.Equal(t, "e1\n"+gap+"\ne1", heard(feed, 3))
		require.Contains(t, s.seen[1], `{"name":"n","cursor":null}`)
	})
}

func TestAProgramThatDoesNotKeepUpLosesNothing(t *testing.T) {
	// One is handed over, 1024 wait for it, and the next is too many.
	first, rest, want := `active ,"cursor":"0"`, `active ,"cursor":"1024"`, []string{}
	for i := range 1100 {
		event := "; event ," + occurrence(fmt.Sprint(i), fmt.Sprint(i))
		want = append(want, fmt.Sprintf("%d at %d", i, i))
		switch first += event; {
		case i == 0:
			first += "; wait 1s"
		case i > 1024:
			rest += event
		}
	}
	want = append(want, "client: events/stream: enough (code -32012)")
	follow(t, map[string][]string{MethodStream: {first + "; hang", rest + "; end", "refuse enough"}}, func(t *testing.T, s *script, c *client.Client) {
		feed, err := Follow(t.Context(), c, Push, "n", nil, Position{})
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.Equal(t, strings.Join(want, "\n"), heard(feed, len(want)))
		require.Contains(t, s.seen[1], `{"name":"n","cursor":"1024"}`)
	})
}

func TestTheEndOfFollowing(t *testing.T) {
	lines := map[string][]string{
		MethodList:   {`{"resultType":"complete","events":[{"name":"n","delivery":["poll"]},{"name":"w","delivery":["webhook"]}]}`},
		MethodPoll:   {`{"resultType":"complete","events":[],"cursor":"c1"}`},
		MethodStream: {"refuse not yours", "end", "active ; hang"},
	}
	follow(t, lines, func(t *testing.T, s *script, c *client.Client) {
		open := func(ctx context.Context, mode, name string) (iter.Seq2[*Occurrence, error], error) {
			return Follow(ctx, c, mode, name, nil, Position{})
		}
		_, err := open(t.Context(), "", "w")
		require.EqualError(t, err, `events: the server offers no stream and no polls of "w"`)
		_, err = open(t.Context(), Push, "n")
		require.EqualError(t, err, "client: events/stream: not yours (code -32012)")
		_, err = open(t.Context(), Push, "n")
		require.EqualError(t, err, "events: the server ended the stream")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stream, err := open(ctx, Push, "n")
		require.NoError(t, err)
		require.Equal(t, "context deadline exceeded", heard(stream, 2))
		polls, err := open(t.Context(), "", "n")
		require.NoError(t, err)
		time.AfterFunc(time.Second/2, func() { _ = c.Close() })
		require.Equal(t, "transport: closed", heard(polls, 2))
	})
}

func TestOnlyOfferedEventsAreFollowed(t *testing.T) {
	for _, extensions := range []string{`{}`, `{"` + ID + `":{"revision":"2"}}`} {
		s := &script{extensions: extensions}
		c, err := client.Dial(t.Context(), s)
		require.NoError(t, err)
		_, err = Follow(t.Context(), c, Push, "n", nil, Position{})
		require.ErrorIs(t, err, ErrNotOffered)
		for _, err := range List(t.Context(), c) {
			require.ErrorIs(t, err, ErrNotOffered)
		}
		require.ErrorIs(t, NewReceiver("").Subscribe(t.Context(), c, "n", nil, Position{}, nil), ErrNotOffered)
		require.Empty(t, s.seen)
		require.NoError(t, c.Close())
	}
}
