package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A panicker panics in all its methods, as a handler may that meets input it does not expect.
type panicker struct{}

func (panicker) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	panic("oops")
}

func (panicker) Log(context.Context, *protocol.LoggingMessageParams) { panic("oops") }

func TestAPanicInAHandlerEndsNeitherTheProgramNorTheConnection(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, dial dialer, v protocol.Version) {
		c := dial(t, client.Handlers(panicker{}), client.LogLevel(protocol.LevelDebug))
		if v >= protocol.V20250618 { // earlier versions have no questions
			_, err := c.CallTool(t.Context(), "order", Hit{ID: 1, Title: "tea"})
			require.Error(t, err)
		}
		_, err := c.CallTool(t.Context(), "count", nil)
		require.NoError(t, err)
		require.NoError(t, c.Ping(t.Context()))
	})
}
