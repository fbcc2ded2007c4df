package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A closer closes its client in the first of its methods that is called.
type closer struct {
	c      chan *client.Client // holds the client
	closed chan error          // what Close returned
}

func newCloser() *closer { return &closer{make(chan *client.Client, 1), make(chan error, 1)} }

func (k *closer) close() {
	select {
	case c := <-k.c:
		k.closed <- c.Close()
	default:
	}
}

type closesOnTools struct{ *closer }

func (k closesOnTools) ToolsChanged(context.Context) { k.close() }

type closesOnUpdate struct{ *closer }

func (k closesOnUpdate) ResourceUpdated(context.Context, string) { k.close() }

type closesOnLog struct{ *closer }

func (k closesOnLog) Log(context.Context, *protocol.LoggingMessageParams) { k.close() }

type closesOnProgress struct{ *closer }

func (k closesOnProgress) Progress(context.Context, *protocol.ProgressParams) { k.close() }

type closesOnQuestion struct{ *closer }

func (k closesOnQuestion) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	k.close()
	return nil, client.ErrRejected
}

func TestCloseReturnsInsideAHandler(t *testing.T) {
	for _, test := range []struct {
		name    string
		tool    string // whose call makes the server use the handler
		args    any
		handler func(k *closer) any
	}{
		{"tools changed", "change", nil, func(k *closer) any { return closesOnTools{k} }},
		{"resource updated", "change", nil, func(k *closer) any { return closesOnUpdate{k} }},
		{"log message", "count", nil, func(k *closer) any { return closesOnLog{k} }},
		{"progress", "count", nil, func(k *closer) any { return closesOnProgress{k} }},
		{"question", "order", Hit{ID: 1, Title: "tea"}, func(k *closer) any { return closesOnQuestion{k} }},
	} {
		for _, b := range transports {
			for _, v := range []protocol.Version{protocol.LatestLegacy, protocol.Latest} {
				if b.name == "sse" && v.Modern() {
					continue // HTTP+SSE supports only legacy versions
				}
				t.Run(test.name+"/"+b.name+"/"+string(v), func(t *testing.T) {
					t.Parallel()
					k := newCloser()
					c := dial(t, b.target(t), client.Version(v), client.Handlers(test.handler(k)), client.LogLevel(protocol.LevelDebug))
					_, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"shop://hours"}})
					require.NoError(t, err)
					k.c <- c
					over := make(chan struct{})
					go func() {
						defer close(over)
						r, err := c.CallTool(t.Context(), test.tool, test.args) // which may come back before or after Close does
						if err != nil && r != nil {
							t.Error(err)
							k.closed <- c.Close()
						}
					}()
					require.NoError(t, <-k.closed)
					<-over
					_, err = c.CallTool(t.Context(), "add", nil)
					require.EqualError(t, err, `client: tools/call "add": transport: closed`)
				})
			}
		}
	}
}
