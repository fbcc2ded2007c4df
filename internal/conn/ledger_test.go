package conn_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

var errOver = errors.New("over")

func ledgerRequest(id int64, method string) *jsonrpc.Request {
	return &jsonrpc.Request{ID: jsonrpc.NumberID(id), Method: method}
}

func ledgerNotification(method string) *jsonrpc.Request { return &jsonrpc.Request{Method: method} }

func ledgerCancellation(id string) *jsonrpc.Request {
	return &jsonrpc.Request{Method: "notifications/cancelled", Params: []byte(`{"requestId":` + id + `}`)}
}

func begin(t *testing.T, l *conn.Ledger, req *jsonrpc.Request) *conn.Entry {
	t.Helper()
	c, err := l.Begin(t.Context(), req, 10)
	require.Nil(t, err)
	return c
}

func TestEndedCallsAreRemoved(t *testing.T) {
	var l conn.Ledger
	calls := []*conn.Entry{
		begin(t, &l, ledgerRequest(1, "tools/call")), begin(t, &l, ledgerRequest(2, "tools/call")),
		begin(t, &l, ledgerRequest(3, "subscriptions/listen")), begin(t, &l, ledgerNotification("n")),
	}
	require.Equal(t, conn.Tally{Calls: 2, Subscriptions: 1, Notifications: 1, Bytes: 40}, l.Tally())
	for _, c := range calls {
		require.NoError(t, c.Context().Err())
		require.True(t, c.End())
		require.False(t, c.End(), "a second End does nothing")
		require.ErrorIs(t, c.Context().Err(), context.Canceled)
	}
	require.Zero(t, l.Tally())
}

func TestAnIDIsInFlightOnceInEachDirection(t *testing.T) {
	var l conn.Ledger
	first := begin(t, &l, ledgerRequest(1, "a"))
	_, err := l.Begin(t.Context(), ledgerRequest(1, "b"), 10)
	require.Equal(t, jsonrpc.Errorf(-32600, "a request with the id 1 is in flight"), err)

	q, asked := l.Ask(jsonrpc.NumberID(1))
	require.NoError(t, asked)
	_, asked = l.Ask(jsonrpc.NumberID(1))
	require.EqualError(t, asked, "a request with the id 1 is in flight (code -32600)")

	first.End()
	again := begin(t, &l, ledgerRequest(1, "b"))
	require.False(t, first.End(), "the end of the first call does not end the second")
	require.Equal(t, 1, l.Tally().Calls)
	again.End()
	require.True(t, l.Answer(&jsonrpc.Response{ID: q.ID}))
}

func TestLimitsRefuse(t *testing.T) {
	for _, test := range []struct {
		name   string
		limits conn.Tally
		before []*jsonrpc.Request
		req    *jsonrpc.Request
		want   string
	}{
		{"calls", conn.Tally{Calls: 2}, []*jsonrpc.Request{ledgerRequest(1, "a"), ledgerRequest(2, "a")}, ledgerRequest(3, "a"), "busy: 2 requests are in flight"},
		{"subscriptions", conn.Tally{Subscriptions: 1}, []*jsonrpc.Request{ledgerRequest(1, "subscriptions/listen")}, ledgerRequest(3, "subscriptions/listen"),
			"busy: 1 subscriptions are open; end one, or ask for more in one"},
		{"subscriptions are not calls", conn.Tally{Calls: 1}, []*jsonrpc.Request{ledgerRequest(1, "subscriptions/listen")}, ledgerRequest(3, "a"), ""},
		{"notifications", conn.Tally{Notifications: 1}, []*jsonrpc.Request{ledgerNotification("n")}, ledgerNotification("n"), "busy: 1 notifications are unhandled"},
		{"notifications are not calls", conn.Tally{Calls: 1}, []*jsonrpc.Request{ledgerNotification("n")}, ledgerRequest(3, "a"), ""},
		{"bytes", conn.Tally{Bytes: 19}, []*jsonrpc.Request{ledgerRequest(1, "a")}, ledgerRequest(3, "a"), "busy: requests of 10 bytes are in flight"},
		{"bytes of notifications", conn.Tally{Bytes: 19}, []*jsonrpc.Request{ledgerNotification("n")}, ledgerRequest(3, "a"), "busy: requests of 10 bytes are in flight"},
		{"a single message may be larger", conn.Tally{Bytes: 9}, nil, ledgerRequest(3, "a"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := conn.Ledger{Limits: test.limits}
			for _, req := range test.before {
				begin(t, &l, req)
			}
			before := l.Tally()
			_, err := l.Begin(t.Context(), test.req, 10)
			if test.want == "" {
				require.Nil(t, err)
				return
			}
			require.Equal(t, jsonrpc.Errorf(-32603, "%s", test.want), err)
			require.Equal(t, before, l.Tally())
		})
	}
}

func TestThePeerCancels(t *testing.T) {
	var l conn.Ledger
	c, other := begin(t, &l, ledgerRequest(1, "a")), begin(t, &l, ledgerRequest(2, "a"))
	handshake := begin(t, &l, ledgerRequest(3, "initialize"))
	for _, id := range []string{`"1"`, `7`, `null`, `{}`, `1.0`, `3`} {
		l.Cancel(ledgerCancellation(id))
	}
	l.Cancel(ledgerNotification("notifications/cancelled"))
	require.True(t, c.Wanted())
	l.Cancel(ledgerCancellation("1"))
	require.False(t, c.Wanted())
	require.ErrorIs(t, context.Cause(c.Context()), conn.ErrCancelled)
	require.Equal(t, 3, l.Tally().Calls, "a cancelled call is in flight until it ends")
	require.False(t, c.End())
	require.True(t, other.End())
	require.NoError(t, handshake.Context().Err())
}

func TestQuestionsAreAnsweredOnce(t *testing.T) {
	var l conn.Ledger
	first, err := l.Ask(jsonrpc.ID{})
	require.NoError(t, err)
	require.Equal(t, first.ID, l.OnlyOutgoing())
	second, err := l.Ask(jsonrpc.ID{})
	require.NoError(t, err)
	require.False(t, l.OnlyOutgoing().IsValid())
	require.Equal(t, []jsonrpc.ID{jsonrpc.NumberID(1), jsonrpc.NumberID(2)}, []jsonrpc.ID{first.ID, second.ID})

	begin(t, &l, ledgerRequest(1, "a"))
	require.False(t, l.Answer(&jsonrpc.Response{ID: jsonrpc.StringID("1")}))
	resp := &jsonrpc.Response{ID: first.ID}
	require.True(t, l.Answer(resp))
	require.False(t, l.Answer(&jsonrpc.Response{ID: first.ID}))
	require.Same(t, resp, <-first.Answer)
	require.False(t, first.End())
	require.True(t, second.End())
	require.False(t, l.Answer(&jsonrpc.Response{ID: second.ID}))
	require.Equal(t, conn.Tally{Calls: 1, Bytes: 10}, l.Tally())
}

func TestStopAndClose(t *testing.T) {
	for _, test := range []struct {
		name string
		stop func(l *conn.Ledger) (idle <-chan struct{})
		ends bool // the context of calls
	}{
		{"Stop", func(l *conn.Ledger) <-chan struct{} { return l.Stop(errOver) }, false},
		{"Close", func(l *conn.Ledger) <-chan struct{} { return l.Close(errOver) }, true},
		{"Stop and Close", func(l *conn.Ledger) <-chan struct{} {
			l.Stop(errors.New("first"))
			l.Close(errOver)
			return l.Close(errOver)
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var l conn.Ledger
			call, subscription := begin(t, &l, ledgerRequest(1, "a")), begin(t, &l, ledgerRequest(2, "subscriptions/listen"))
			note := begin(t, &l, ledgerNotification("n"))
			q, err := l.Ask(jsonrpc.ID{})
			require.NoError(t, err)
			idle := test.stop(&l)

			_, open := <-q.Answer
			require.False(t, open)
			require.False(t, q.End())
			_, err = l.Ask(jsonrpc.ID{})
			require.ErrorIs(t, err, transport.ErrClosed)
			_, refused := l.Begin(t.Context(), ledgerRequest(3, "a"), 10)
			require.Equal(t, jsonrpc.Errorf(-32603, "the connection is shutting down"), refused)

			require.Error(t, subscription.Context().Err())
			require.Equal(t, test.ends, call.Context().Err() != nil)
			require.Equal(t, test.ends, note.Context().Err() != nil)
			if test.ends {
				require.ErrorIs(t, context.Cause(call.Context()), errOver)
			}
			for _, c := range []*conn.Entry{call, subscription, note} {
				select {
				case <-idle:
					require.Fail(t, "calls are in flight")
				default:
				}
				require.True(t, c.End(), "the response of a call that was not cancelled by the peer is wanted")
			}
			<-idle
		})
	}
	t.Run("of an empty ledger", func(t *testing.T) {
		var l conn.Ledger
		<-l.Close(errOver)
	})
}

func TestLedgerIsSafeForConcurrentUse(t *testing.T) {
	l := conn.Ledger{Limits: conn.Tally{Calls: 3, Bytes: 1000}}
	var all sync.WaitGroup
	for i := range int64(8) {
		all.Go(func() {
			for range 200 {
				c, err := l.Begin(context.Background(), ledgerRequest(i, "a"), 10)
				if err == nil {
					l.Cancel(ledgerCancellation(fmt.Sprint(i)))
					c.End()
				}
				q, _ := l.Ask(jsonrpc.ID{})
				if i%2 == 0 {
					l.Answer(&jsonrpc.Response{ID: q.ID})
				}
				q.End()
			}
		})
	}
	all.Wait()
	require.Zero(t, l.Tally())
}

func TestLostCallsAreToldFromOtherErrors(t *testing.T) {
	resp := conn.Lost(jsonrpc.NumberID(7))
	require.Equal(t, jsonrpc.NumberID(7), resp.ID)
	require.True(t, conn.IsLost(resp.Error))
	for _, data := range []string{``, `null`, `{}`, `[]`, `{"lost":false}`, `{"lost":1}`, `{"lost"`} {
		require.False(t, conn.IsLost(&jsonrpc.Error{Code: jsonrpc.CodeInternalError, Data: []byte(data)}), data)
	}
	require.False(t, conn.IsLost(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Data: []byte(`{"lost":true}`)}))
}

func TestBytesAreLimitedInAll(t *testing.T) {
	m := conn.Memory{Max: 10}
	one, two := conn.Share{All: &m}, conn.Share{All: &m, Free: 2}
	require.True(t, one.Take(6))
	require.False(t, two.Take(7))
	require.True(t, two.Take(6), "two of them are free")
	require.True(t, one.Take(-2))
	require.True(t, one.Take(2), "what was given back")
	one.Close()
	one.Close()
	require.False(t, one.Take(7))
	two.Close()
	require.True(t, one.Take(100) && one.Take(1), "one alone may be larger")
	require.False(t, two.Take(3))
	require.True(t, two.Take(2))
	two.Close()
	one.Close()
	require.True(t, two.Take(12) && !one.Take(1), "all was given back")
}
