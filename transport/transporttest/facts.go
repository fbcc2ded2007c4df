package transporttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func request(id int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{}}`, id, method)
}

func response(id int, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, result)
}

func cancel(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

func responsesHaveIDs(x *exam) {
	for _, id := range []string{`1`, `0`, `-7`, `9007199254740993`, `"a"`, `"1"`, `""`} {
		x.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"echo","params":{"of":` + id + `}}`)
		x.expect(`{"jsonrpc":"2.0","id":` + id + `,"result":{"of":` + id + `}}`)
	}
}

func notificationsAreInOrder(x *exam) {
	var want []string
	for i := range 20 {
		method := "said"
		if i == 0 || i == 19 {
			method = "said slowly"
		}
		x.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"n":%d}}`, method, i))
		want = append(want, fmt.Sprintf(`{\"n\":%d}`, i))
	}
	x.send(request(1, "heard"))
	x.expect(response(1, `"`+strings.Join(want, " ")+`"`))
}

func notificationsComeFirst(x *exam) {
	x.send(request(1, "notes"))
	for i := range 100 {
		x.expect(fmt.Sprintf(`{"jsonrpc":"2.0","method":"note","params":{"n":%d}}`, i))
	}
	x.expect(response(1, `{}`))
}

func manyCalls(x *exam) {
	var got, want []string
	for i := range 50 {
		x.send(request(i, "block"))
		want = append(want, response(i, `{}`))
	}
	for range want {
		x.wait("all calls begin", x.begun)
	}
	x.works()
	close(x.release)
	for range want {
		got = append(got, x.receive())
	}
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(x, want, got)
	x.works()
}

func cancellationEndsCalls(x *exam) {
	x.send(request(1, "block"))
	x.wait("the call begins", x.begun)
	x.send(cancel("1"))
	x.wait("the call ends", x.over)
	x.works()
	// Cancelling an unknown request, or none, is ignored.
	x.send(cancel("1"))
	x.send(cancel("{}"))
	x.works()
}

func garbageIsRefused(x *exam) {
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,`:  `"code":-32700`,
		`{"jsonrpc":"2.0","id":1}`:  `"code":-32600`,
		`{"jsonrpc":"1.0","id":1}`:  `"code":-32600`,
		`{"id":[],"method":"echo"}`: `"code":-32600`,
	} {
		x.send(message)
		require.Contains(x, x.receive(), want, message)
	}
	x.works()
}

// largeMessagesAreRefused tests that the message is not handled and its sender gets an error. The
// connection may end or continue.
func largeMessagesAreRefused(x *exam) {
	large := strings.Replace(request(1, "echo"), "{}", `{"x":"`+strings.Repeat("x", 2*MaxMessageBytes)+`"}`, 1)
	if x.conn.Send([]byte(large)) != nil {
		return
	}
	message, err := x.conn.Receive()
	if err != nil {
		return
	}
	require.Contains(x, string(message), `"error":{"code":-32600,`)
	x.works()
}

func backpressure(x *exam) {
	x.send(request(1, "flood"))
	x.wait("the call begins", x.begun)
	// Wait until it has stood still for 300 ms.
	for last, same := int64(-1), 0; same < 15; time.Sleep(20 * time.Millisecond) {
		if told := x.told.Load(); told != last {
			last, same = told, 0
		}
		same++
	}
	require.Less(x, x.told.Load(), int64(floodNotes), "what the client does not read is kept somewhere")
	for range floodNotes {
		require.Contains(x, x.receive(), `"method":"note"`)
	}
	x.expect(response(1, `{}`))
	x.works()
}

func sessionsHaveTheVersion(x *exam) {
	x.works()
	x.mu.Lock()
	defer x.mu.Unlock()
	require.NotEmpty(x, x.sessions)
	for s := range x.sessions {
		require.Equal(x, "2025-11-25", s.Version())
	}
}

func sessionReachesClient(x *exam) {
	x.send(request(1, "tell"))
	// The notification may come on another stream, before or after the response.
	want := []string{response(1, `{}`), `{"jsonrpc":"2.0","method":"note","params":{"n":7}}`}
	require.ElementsMatch(x, want, []string{x.receive(), x.receive()})
}

// question calls "ask", reads the server request and returns its ID.
func (x *exam) question(call int) string {
	x.Helper()
	x.send(request(call, "ask"))
	m, bad := jsonrpc.Decode([]byte(x.receive()))
	require.Nil(x, bad)
	require.NotNil(x, m.Request)
	require.Equal(x, "roots/list", m.Request.Method)
	require.True(x, m.Request.ID.IsValid())
	return m.Request.ID.String()
}

func serverAsks(x *exam) {
	id := x.question(1)
	x.works() // while the server waits
	x.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"roots":[]}}`)
	x.expect(response(1, `{"roots":[]}`))
	// Responses that no request waits for are ignored.
	x.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"roots":[1]}}`)
	x.send(`{"jsonrpc":"2.0","id":4711,"error":{"code":1,"message":"?"}}`)
	x.works()

	x.send(`{"jsonrpc":"2.0","id":` + x.question(2) + `,"error":{"code":-1,"message":"no"}}`)
	x.expect(`{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"no (code -1)"}}`)
}

func cancellationEndsQuestions(x *exam) {
	x.question(1)
	x.send(cancel("1"))
	x.wait("the question ends", x.over)
}

func hangingUpEndsCalls(x *exam) {
	x.send(request(1, "block"))
	x.wait("the call begins", x.begun)
	require.NoError(x, x.conn.Close())
	x.wait("the call ends", x.over)
}

func hangingUpEndsQuestions(x *exam) {
	x.question(1)
	require.NoError(x, x.conn.Close())
	x.wait("the question ends", x.over)
}

func stoppingLetsCallsFinish(x *exam) {
	x.send(request(1, "block"))
	x.wait("the call begins", x.begun)
	x.conn.Stop()
	close(x.release)
	x.expect(response(1, `{}`))
	// The client need not do anything for the server's side to end.
	x.wait("the server's side ends", x.conn.Done())
}

func peersEnd(x *exam) {
	x.works()
	x.mu.Lock()
	peer := x.peer
	x.mu.Unlock()
	// The response may arrive before the transport has recorded the end of the call.
	require.Eventually(x, func() bool {
		return peer.Notify(x.Context(), note(1)) == transport.ErrClosed
	}, patience, time.Millisecond, "Notify after the end of the call has to return transport.ErrClosed")
}
