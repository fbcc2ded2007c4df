package transporttest

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func responsesHaveIDs(_ *testing.T, x *exam) {
	for _, id := range []string{`1`, `0`, `-7`, `9007199254740993`, `"a"`, `"1"`, `""`} {
		x.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"echo","params":{"of":` + id + `}}`)
		x.expect(`{"jsonrpc":"2.0","id":` + id + `,"result":{"of":` + id + `}}`)
	}
}

func notificationsAreInOrder(_ *testing.T, x *exam) {
	want := make([]string, 0, 20)
	for i := range 20 {
		method := "said"
		if i == 0 || i == 19 {
			method = "said slowly"
		}
		x.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"n":%d}}`, method, i))
		want = append(want, fmt.Sprintf(`{\"n\":%d}`, i))
	}
	x.send(request(1, "heard", "{}"))
	x.expect(response(1, `"`+strings.Join(want, " ")+`"`))
}

func notificationsComeFirst(_ *testing.T, x *exam) {
	x.send(request(1, "notes", "{}"))
	for i := range 100 {
		x.expect(fmt.Sprintf(`{"jsonrpc":"2.0","method":"note","params":{"n":%d}}`, i))
	}
	x.expect(response(1, `{}`))
}

func callsAreConcurrent(_ *testing.T, x *exam) {
	x.send(request(1, "release", "{}"))
	x.wait("the call begins", x.h.begun)
	x.works()
	close(x.h.release)
	x.expect(response(1, `{}`))
}

func manyCalls(t *testing.T, x *exam) {
	const n = 50
	want := make([]string, n)
	for i := range n {
		x.send(request(i, "release", "{}"))
		want[i] = response(i, `{}`)
	}
	for range n {
		x.wait("all calls begin", x.h.begun)
	}
	close(x.h.release)
	got := make([]string, n)
	for i := range n {
		got[i] = x.receive()
	}
	sort.Strings(got)
	sort.Strings(want)
	require.Equal(t, want, got)
	x.works()
}

func cancellationEndsCalls(_ *testing.T, x *exam) {
	x.send(request(1, "block", "{}"))
	x.wait("the call begins", x.h.begun)
	x.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	x.wait("the call ends", x.h.over)
	x.works()
	// Cancelling an unknown request, or none, is ignored.
	x.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	x.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`)
	x.works()
}

func garbageIsRefused(t *testing.T, x *exam) {
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,`:  `"code":-32700`,
		`{"jsonrpc":"2.0","id":1}`:  `"code":-32600`,
		`{"jsonrpc":"1.0","id":1}`:  `"code":-32600`,
		`{"id":[],"method":"echo"}`: `"code":-32600`,
	} {
		x.send(message)
		require.Contains(t, x.receive(), want, message)
	}
	x.works()
}

// largeMessagesAreRefused tests that the message is not handled and its sender gets an error. The
// connection may end or continue.
func largeMessagesAreRefused(t *testing.T, x *exam) {
	large := request(1, "echo", `{"x":"`+strings.Repeat("x", 2*MaxMessageBytes)+`"}`)
	if x.conn.Send([]byte(large)) != nil {
		return
	}
	message, err := x.tryReceive()
	if err != nil {
		require.NotEqual(t, "nothing was received", err.Error())
		return
	}
	require.Contains(t, message, `"error":{"code":-32600,`)
	x.works()
}

func backpressure(t *testing.T, x *exam) {
	x.send(request(1, "flood", "{}"))
	x.wait("the call begins", x.h.begun)
	told := x.settled()
	require.Less(t, told, floodNotes, "all of the flood was taken while the client read nothing: it is kept somewhere")
	for range floodNotes {
		require.Contains(t, x.receive(), `"method":"note"`)
	}
	x.expect(response(1, `{}`))
	x.works()
}

// settled waits until the flood stands still, and returns how far it came.
func (x *exam) settled() int {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last, same := -1, 0
	for same < 15 {
		<-tick.C
		x.h.mu.Lock()
		told := x.h.told
		x.h.mu.Unlock()
		if told == last {
			same++
		} else {
			last, same = told, 0
		}
	}
	return last
}

func sessionsHaveTheVersion(t *testing.T, x *exam) {
	x.works()
	x.works()
	x.h.mu.Lock()
	defer x.h.mu.Unlock()
	require.NotEmpty(t, x.h.seen)
	for s := range x.h.seen {
		require.Equal(t, "2025-11-25", s.Version())
	}
}

func sessionReachesClient(t *testing.T, x *exam) {
	x.send(request(1, "tell", "{}"))
	// The notification may come on another stream, before or after the response.
	got := []string{x.receive(), x.receive()}
	require.ElementsMatch(t, []string{response(1, `{}`), `{"jsonrpc":"2.0","method":"note","params":{"n":7}}`}, got)
}

// question reads a server request and returns its ID.
func (x *exam) question() jsonrpc.ID {
	x.t.Helper()
	m, bad := jsonrpc.Decode([]byte(x.receive()))
	require.Nil(x.t, bad)
	require.NotNil(x.t, m.Request)
	require.Equal(x.t, "roots/list", m.Request.Method)
	require.True(x.t, m.Request.ID.IsValid())
	return m.Request.ID
}

func serverAsks(_ *testing.T, x *exam) {
	x.send(request(1, "ask", "{}"))
	id := x.question()
	x.works() // while the server waits
	x.send(`{"jsonrpc":"2.0","id":` + id.String() + `,"result":{"roots":[]}}`)
	x.expect(response(1, `{"roots":[]}`))
	// Responses that no request waits for are ignored.
	x.send(`{"jsonrpc":"2.0","id":` + id.String() + `,"result":{"roots":[1]}}`)
	x.send(`{"jsonrpc":"2.0","id":4711,"error":{"code":1,"message":"?"}}`)
	x.works()

	x.send(request(2, "ask", "{}"))
	x.send(`{"jsonrpc":"2.0","id":` + x.question().String() + `,"error":{"code":-1,"message":"no"}}`)
	x.expect(`{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no (code -1)"}}`)
}

func questionsEnd(t *testing.T, x *exam) {
	x.send(request(1, "ask", `{"impatient":true}`))
	x.question()
	got := x.receive()
	// The server may cancel its request.
	if strings.Contains(got, "notifications/cancelled") {
		got = x.receive()
	}
	require.Equal(t, response(1, `"in vain"`), got)
}

func hangingUpEndsCalls(t *testing.T, x *exam) {
	x.send(request(1, "block", "{}"))
	x.wait("the call begins", x.h.begun)
	require.NoError(t, x.conn.Close())
	x.wait("the call ends", x.h.over)
}

func hangingUpEndsQuestions(t *testing.T, x *exam) {
	x.send(request(1, "ask", "{}"))
	x.question()
	require.NoError(t, x.conn.Close())
	x.wait("the question ends", x.h.over)
}

func stoppingLetsCallsFinish(_ *testing.T, x *exam) {
	x.send(request(1, "release", "{}"))
	x.wait("the call begins", x.h.begun)
	x.conn.Stop()
	close(x.h.release)
	x.expect(response(1, `{}`))
	// The client need not do anything for the server's side to end.
	x.wait("the server's side ends", x.conn.Done())
}

func peersEnd(t *testing.T, x *exam) {
	x.works()
	x.h.mu.Lock()
	peer := x.h.peer
	x.h.mu.Unlock()
	// The response may arrive before the transport has recorded the end of the call.
	require.Eventually(t, func() bool {
		return peer.Notify(t.Context(), note(1)) == transport.ErrClosed
	}, patience, time.Millisecond, "Notify after the end of the call has to return transport.ErrClosed")
}
