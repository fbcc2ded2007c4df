package mcpkit

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

type plainPeer struct{}

func (plainPeer) Notify(context.Context, *jsonrpc.Request) error { return nil }
func (plainPeer) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}
func (plainPeer) Session() *transport.Session { return nil }
func (plainPeer) Header() transport.Header    { return nil }

// A server to which nothing was added shares the table of the protocol's methods with all others.
func TestServersShareTheTableOfMethods(t *testing.T) {
	plain, added := MustNew(nil), MustNew(nil)
	require.NoError(t, Handle(added, "example.com/reindex", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }))
	require.Contains(t, added.catalog.Load().methods, "example.com/reindex")
	require.NotContains(t, coreMethods, "example.com/reindex")
	require.Len(t, plain.catalog.Load().methods, len(coreMethods))
	for method, row := range coreMethods {
		require.Nil(t, row.overdue, "servers would share the count of %s", method)
	}
}

// Added rows can have all that the rows of the protocol have: versions, a feature with a
// capability, params, notifications.
func TestMethodsCanBeAddedToOneServer(t *testing.T) {
	type params struct {
		URI string `json:"uri"`
	}
	var refreshed []string
	skills := &feature{
		has: func(*catalog) bool { return true },
		declare: func(caps *protocol.ServerCapabilities, v protocol.Version) {
			if v.Modern() {
				caps.Extensions = map[string]protocol.Object{"example.com/skills": {}}
			}
		},
	}
	s := MustNew(nil, Name("library", "1.0.0"))
	require.NoError(t, s.change(func(c *catalog) error {
		return c.addMethods(
			&methodRow{
				method: "skills/get", from: protocol.V20260728, feature: skills, source: s,
				handle: withParams(decodeParams, func(_ context.Context, _ *Call, p *params) (Result, error) { return p, nil }),
			},
			&methodRow{
				method: "notifications/skills/refresh", notification: true, source: s,
				handle: withParams(decodeParams, func(_ context.Context, _ *Call, p *params) (Result, error) {
					refreshed = append(refreshed, p.URI)
					return nil, nil
				}),
			},
		)
	}))
	send := func(s *Server, id jsonrpc.ID, method, params string) string {
		resp := s.ServeRPC(t.Context(), &jsonrpc.Request{ID: id, Method: method, Params: json.RawMessage(params)}, plainPeer{})
		if resp == nil {
			return ""
		}
		return string(jsonrpc.AppendResponse(nil, resp))
	}
	id := jsonrpc.NumberID(1)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	require.Contains(t, send(s, id, "skills/get", `{"uri":"skill://go",`+meta+`}`), `"result":{"uri":"skill://go"`)
	require.Contains(t, send(s, id, "server/discover", `{`+meta+`}`), `"extensions":{"example.com/skills":{}}`)
	require.Contains(t, send(s, id, "skills/get", `{"uri":"skill://go"}`), `params._meta needs the string`, "only modern versions have it")
	require.Contains(t, send(s, id, "skills/gte", `{`+meta+`}`), `did you mean \"skills/get\"`)
	require.Contains(t, send(s, id, "notifications/skills/refresh", `{`+meta+`}`), `is not offered`, "it is not a request")
	require.Empty(t, send(s, jsonrpc.ID{}, "notifications/skills/refresh", `{"uri":"skill://go"}`))
	require.Empty(t, send(s, jsonrpc.ID{}, "skills/get", `{}`), "it is not a notification")
	require.Equal(t, []string{"skill://go"}, refreshed)
	require.Contains(t, send(MustNew(nil), id, "skills/get", `{`+meta+`}`), `method \"skills/get\" is not offered`, "another server")
}
