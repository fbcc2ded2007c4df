package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// keys are those with which parcels were taken.
type keys struct {
	mu   sync.Mutex
	seen map[string][]string // by parcel; guarded by mu
}

func (k *keys) Take(_ context.Context, id, key string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen[id] = append(k.seen[id], key)
	return nil
}

// person agrees to everything.
type person struct{}

func (person) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: []byte(`{"confirm":true}`)}, nil
}

// serve returns the URL of two replicas, which get requests in turn.
func serve(t *testing.T, carrier Carrier) string {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	var replicas [2]http.Handler
	for i := range replicas {
		srv, err := newServer(engine.Open(), []byte("32 bytes that all replicas share"), carrier)
		require.NoError(t, err)
		require.NoError(t, srv.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, srv.Close()) })
		handler := streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})
		t.Cleanup(handler.Close)
		replicas[i] = handler
	}
	var next atomic.Uint64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		replicas[next.Add(1)%2].ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	t.Cleanup(front.CloseClientConnections)
	return front.URL
}

func TestAnyReplicaServesAnyRequest(t *testing.T) {
	for _, version := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		t.Run(string(version), func(t *testing.T) {
			carrier := &keys{seen: map[string][]string{}}
			c, err := client.Dial(t.Context(), serve(t, carrier),
				client.Version(version), client.Handlers(person{}), client.Tasks())
			require.NoError(t, err)
			defer c.Close()
			status, err := c.Subscribe(t.Context(), "parcels://status")
			require.NoError(t, err)
			for range 3 {
				grams, err := client.Call[int](t.Context(), c, "weigh", map[string]string{"id": "A1"})
				require.NoError(t, err)
				require.Equal(t, 200, grams)
			}
			text, err := client.Call[string](t.Context(), c, "deliver", map[string]string{"id": "A1"})
			require.NoError(t, err)
			require.Equal(t, "delivered A1", text)
			require.Len(t, carrier.seen["A1"], 1)
			change, err := status.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, "parcels://status", change.URI)
		})
	}
}
