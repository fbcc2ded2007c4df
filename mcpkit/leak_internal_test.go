package mcpkit

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// TestEveryMethodIsKnownToTheLeakTests fails when a method is added: it belongs to those below that
// reach something, so that leak_test.go sends it too, or to those that reach nothing of the user's.
func TestEveryMethodIsKnownToTheLeakTests(t *testing.T) {
	reaching := []string{
		protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead, protocol.MethodCompletionComplete,
		protocol.MethodResourcesSubscribe, protocol.MethodResourcesUnsubscribe, protocol.MethodSubscriptionsListen,
	}
	listing := []string{
		protocol.MethodToolsList, protocol.MethodPromptsList, protocol.MethodResourcesList, protocol.MethodResourcesTemplatesList,
	}
	inert := []string{protocol.MethodInitialize, protocol.NotificationInitialized, protocol.MethodPing, protocol.MethodDiscover, protocol.MethodLoggingSetLevel}
	require.Equal(t, slices.Sorted(slices.Values(slices.Concat(reaching, listing, inert))), slices.Sorted(maps.Keys(coreMethods)))
	for name, row := range coreMethods {
		if row.prepare != nil || row.asks {
			require.Contains(t, reaching, name, "it is about something that may demand scopes")
		}
	}
}
