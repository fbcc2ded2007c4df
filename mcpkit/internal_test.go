package mcpkit

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// TestEveryMethodIsKnownToTheLeakTests fails when a method is added. A method that reaches code or
// data of the program belongs into the first list, and leak_test.go has to send it. All others
// belong into the second list. The tests of mounts (mountRequests) and of middleware (everyRequest)
// send requests of every method, too.
func TestEveryMethodIsKnownToTheLeakTests(t *testing.T) {
	reaching := []string{
		protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead, protocol.MethodCompletionComplete,
		protocol.MethodResourcesSubscribe, protocol.MethodSubscriptionsListen,
	}
	listing := []string{
		protocol.MethodToolsList, protocol.MethodPromptsList, protocol.MethodResourcesList, protocol.MethodResourcesTemplatesList,
	}
	inert := []string{
		protocol.MethodInitialize, protocol.NotificationInitialized, protocol.MethodPing, protocol.MethodDiscover, protocol.MethodLoggingSetLevel,
		protocol.MethodResourcesUnsubscribe,
	}
	require.Equal(t, slices.Sorted(slices.Values(slices.Concat(reaching, listing, inert))), slices.Sorted(maps.Keys(coreMethods)),
		"add the method here, to mountRequests of mount_test.go, and to everyRequest of middleware/harness_test.go")
	for name, row := range coreMethods {
		if (row.prepare != nil || row.asks) && name != protocol.MethodResourcesUnsubscribe { // it forgets a URI
			require.Contains(t, reaching, name, "it is about something that may demand scopes")
		}
	}
}

// A server to which nothing was added shares the table of the protocol's methods with all others.
func TestServersShareTheTableOfMethods(t *testing.T) {
	plain, added := MustNew(nil), MustNew(nil)
	require.NoError(t, Handle(added, "example.com/reindex", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }))
	require.Contains(t, added.catalog.Load().methods, "example.com/reindex")
	require.NotContains(t, coreMethods, "example.com/reindex")
	require.Len(t, plain.catalog.Load().methods, len(coreMethods))
	for method, row := range coreMethods {
		require.Nil(t, row.load, "servers would share the count of %s", method)
	}
}
