package client_test

import (
	"context"
	"testing"
	"time"

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
		handler func(k *closer) any
		since   protocol.Version
	}{
		{"tools changed", "change", func(k *closer) any { return closesOnTools{k} }, ""},
		{"resource updated", "change", func(k *closer) any { return closesOnUpdate{k} }, ""},
		{"log message", "count", func(k *closer) any { return closesOnLog{k} }, ""},
		{"progress", "count", func(k *closer) any { return closesOnProgress{k} }, ""},
		{"question", "order", func(k *closer) any { return closesOnQuestion{k} }, protocol.V20250618},
	} {
		t.Run(test.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
				if v < test.since {
					t.Skip("this version has no elicitation")
				}
				k := newCloser()
				c := dial(t, client.Handlers(test.handler(k)), client.LogLevel(protocol.LevelDebug), client.ShutdownTimeout(5*time.Second))
				_, err := c.Subscribe(t.Context(), "shop://hours")
				require.NoError(t, err)
				k.c <- c
				over := make(chan struct{})
				go func() {
					defer close(over)
					_, _ = c.CallTool(t.Context(), test.tool, nil) // which may come back before or after
				}()
				select {
				case err := <-k.closed:
					require.NoError(t, err)
				case <-time.After(30 * time.Second):
					require.Fail(t, "Close did not return")
				}
				<-over
				_, err = c.CallTool(t.Context(), "add", nil)
				require.EqualError(t, err, `client: tools/call "add": transport: closed`)
			})
		})
	}
}

