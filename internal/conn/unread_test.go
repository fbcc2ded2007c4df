package conn_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A peer that reads nothing is read from until 1 MiB of responses wait. That holds for both ends: a
// server may flood its client with requests as well.
func TestNothingIsReadFromAPeerThatDoesNotReadItsResponses(t *testing.T) {
	id := strings.Repeat("x", 1000) // which each response repeats
	for name, message := range map[string]string{
		"pings":              `{"jsonrpc":"2.0","id":"` + id + `%d","method":"ping"}`,
		"calls":              `{"jsonrpc":"2.0","id":"` + id + `%d","method":"a"}`,
		"requests to refuse": `{"jsonrpc":"2.0","id":"` + id + `%d","method":""}`,
	} {
		for _, client := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", client ", client), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := &wire{stuck: make(chan struct{})}
					p := serveOn(t, &handler{}, &conn.Options{Client: client, WriteTimeout: -1}, w)
					const sent = 10_000
					for i := range sent {
						p.send(fmt.Sprintf(message, i))
					}
					time.Sleep(time.Second)
					require.Greater(t, len(w.in), sent-2500)
					require.Less(t, len(w.in), sent-500)
					// It goes on when the peer reads, and nothing was lost.
					close(w.stuck)
					for range sent {
						require.Contains(t, p.receive(), `"id":"xxx`)
					}
					p.hangUp()
				})
			})
		}
	}
}

// The results of calls that are in flight by the time that reading stops are bounded, too.
func TestResultsOverTheLimitAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := &handler{methods: methods{"large": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			<-release
			return result(req, `"`+strings.Repeat("x", 100<<10)+`"`)
		}}}
		w := &wire{stuck: make(chan struct{})}
		p := serveOn(t, h, &conn.Options{MaxUnsentBytes: 250 << 10, WriteTimeout: -1}, w)
		for i := range 10 {
			p.send(request(i, "large"))
		}
		time.Sleep(time.Second)
		close(release)
		synctest.Wait()
		close(w.stuck)
		whole := 0
		for range 10 {
			line := p.receive()
			if strings.Contains(line, `"result"`) {
				whole++
			} else {
				require.Contains(t, line, `"error":{"code":-32603,"message":"busy: responses of 20`)
			}
		}
		require.Equal(t, 2, whole)
		p.hangUp()
	})
}
