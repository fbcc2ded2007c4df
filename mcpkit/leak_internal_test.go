package mcpkit

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// TestEveryMethodIsKnownToTheLeakTests fails when a method is added. A method that reaches code or
// data of the program belongs into the first list, and leak_test.go has to send it. All others
// belong into the second list.
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
