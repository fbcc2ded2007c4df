package client_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

func TestProbeDetectsLegacyAndModernServers(t *testing.T) {
	const both = `["2026-07-28","2025-11-25"]`
	for _, test := range []struct {
		name  string
		probe answer
		want  protocol.Version
		init  string // the version in the result of initialize; 2025-11-25 if empty
		err   string // the error of Dial; empty if it succeeds
	}{
		{name: "a discovery", probe: result(discovered), want: "2026-07-28"},
		{name: "a discovery with legacy and modern versions", probe: result(`{"supportedVersions":` + both + `,"capabilities":{}}`), want: "2026-07-28"},
		{name: "a discovery in an event stream", probe: stream(event(`{"jsonrpc":"2.0","id":$ID,"result":` + discovered + `}`)), want: "2026-07-28"},
		{name: "a discovery with legacy versions only", probe: result(`{"supportedVersions":["2025-06-18"],"capabilities":{}}`), want: "2025-06-18", init: "2025-06-18"},
		{name: "a discovery with unknown versions only", probe: result(`{"supportedVersions":["2030-01-01"],"capabilities":{}}`),
			err: `client: no common version: the server supports ["2030-01-01"], this client supports ["2026-07-28" "2025-11-25" "2025-06-18" "2025-03-26" "2024-11-05"]`},
		{name: "the version is refused, another is accepted",
			probe: inTurn(withStatus(400, rpcError(-32022, "unsupported", `{"supported":["2026-07-28"],"requested":"x"}`)), result(discovered)), want: "2026-07-28"},
		{name: "every version is refused", probe: withStatus(400, rpcError(-32022, "unsupported", `{"supported":["2026-07-28"],"requested":"x"}`)),
			err: "client: the server refuses version 2026-07-28 although it lists it as supported"},
		{name: "the version is refused in favor of a legacy one", probe: withStatus(400, rpcError(-32022, "unsupported", `{"supported":["2025-11-25"],"requested":"x"}`)), want: "2025-11-25"},
		{name: "a refusal without data", probe: withStatus(400, rpcError(-32022, "unsupported", "")), err: "client: unsupported (code -32022)"},
		{name: "a modern error stays modern", probe: withStatus(400, rpcError(-32020, "headers", "")), err: "client: headers (code -32020)"},
		{name: "a missing capability stays modern", probe: withStatus(400, rpcError(-32021, "more", `{}`)), err: "client: more (code -32021)"},
		{name: "unknown method", probe: rpcError(-32601, "?", ""), want: "2025-11-25"},
		{name: "unknown method with status 404", probe: withStatus(404, rpcError(-32601, "?", "")), want: "2025-11-25"},
		{name: "invalid params", probe: rpcError(-32602, "?", ""), want: "2025-11-25"},
		{name: "an error code without a meaning", probe: rpcError(-32000, "?", ""), want: "2025-11-25"},
		{name: "bad request", probe: status(400, "session?"), want: "2025-11-25"},
		{name: "not found", probe: status(404, ""), want: "2025-11-25"},
		{name: "method not allowed", probe: status(405, ""), want: "2025-11-25"},
		{name: "an internal error", probe: status(500, ""), want: "2025-11-25"},
		{name: "accepted", probe: status(202, ""), want: "2025-11-25"},
		{name: "an invalid result", probe: result(`{}`), want: "2025-11-25"},
		{name: "garbage", probe: raw("application/json", "garbage"), want: "2025-11-25"},
		{name: "a stream without a response", probe: stream(": hello\n\n"), want: "2025-11-25"},
		{name: "silence", probe: silence, want: "2025-11-25"},
		{name: "an older version", probe: status(400, ""), want: "2024-11-05", init: "2024-11-05"},
		{name: "not authorized", probe: status(401, "who are you?"), err: `client: the server responded with HTTP status 401 Unauthorized: "who are you?"`},
		{name: "forbidden", probe: status(403, ""), err: "client: the server responded with HTTP status 403 Forbidden"},
		{name: "unavailable", probe: status(503, ""), err: "client: the server responded with HTTP status 503 Service Unavailable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			init := test.init
			if init == "" {
				init = "2025-11-25"
			}
			f := newLegacyFake(t, map[string]answer{"server/discover": test.probe, "initialize": initialized(init, "")})
			patience := patient
			if test.name == "silence" {
				patience = client.ProbeTimeout(200 * time.Millisecond)
			}
			c, err := dialing(t, f.URL, patience)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				require.Zero(t, f.count("initialize"), "no fallback")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, c.Version())
			if test.want.Modern() {
				require.Zero(t, f.count("initialize"))
			} else {
				require.Equal(t, 1, f.count("notifications/initialized"))
			}
		})
	}
}

func TestResponsesToInitialize(t *testing.T) {
	for _, test := range []struct {
		name string
		init answer
		opts []client.DialOption
		want protocol.Version
		err  string
	}{
		{name: "an unknown version", init: initialized("1999-01-01", ""),
			err: `client: initialize: the server wants version "1999-01-01"; this client supports ["2025-11-25" "2025-06-18" "2025-03-26" "2024-11-05"]`},
		{name: "a modern version", init: initialized("2026-07-28", ""),
			err: `client: initialize: the server wants version "2026-07-28"; this client supports ["2025-11-25" "2025-06-18" "2025-03-26" "2024-11-05"]`},
		{name: "not the pinned version", init: initialized("2025-06-18", ""), opts: []client.DialOption{client.Version("2025-11-25")},
			err: "client: initialize: the server wants version 2025-06-18, not 2025-11-25"},
		{name: "an error that lists other versions", want: "2025-03-26",
			init: inTurn(rpcError(-32602, "?", `{"supported":["2025-03-26"],"requested":"2025-11-25"}`), initialized("2025-03-26", ""))},
		{name: "method not allowed", init: status(405, ""),
			err: "client: initialize: the server responded with HTTP status 405 Method Not Allowed (before, server/discover: the server responded with HTTP status 400 Bad Request);" +
				" HTTP+SSE failed in the same way"},
		{name: "an invalid session ID", init: initialized("2025-11-25", "\xff"),
			err: "client: initialize: the server's response is invalid: the session ID is not valid (before, server/discover: the server responded with HTTP status 400 Bad Request)"},
		{name: "none", init: silence, opts: []client.DialOption{client.Version("2025-11-25"), client.Timeout(100 * time.Millisecond)},
			err: "client: initialize: no response within 100ms"},
		{name: "an invalid result", init: result(`[]`), opts: []client.DialOption{client.Version("2025-11-25")},
			err: "client: initialize: the server's response is invalid: json: cannot unmarshal JSON array into Go protocol.InitializeResult"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newLegacyFake(t, map[string]answer{"initialize": test.init})
			c, err := dialing(t, f.URL, test.opts...)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, c.Version())
		})
	}
}

func TestPinnedVersionIsTheOnlyOneRequested(t *testing.T) {
	f := newLegacyFake(t, nil)
	dial(t, f.URL, client.Version("2025-11-25"))
	require.Equal(t, []string{"initialize", "notifications/initialized"}, f.methods())

	f = newLegacyFake(t, nil)
	_, err := dialing(t, f.URL, client.Version("2026-07-28"))
	require.EqualError(t, err, "client: the server does not speak version 2026-07-28: the server responded with HTTP status 400 Bad Request")
	require.Equal(t, []string{"server/discover"}, f.methods())

	f = newFake(t, nil)
	_, err = dialing(t, f.URL, client.Version("2025-11-25"))
	require.EqualError(t, err, "client: initialize: no such method (code -32601)")
}

func TestUnreachableServerIsNotALegacyServer(t *testing.T) {
	t.Parallel()
	f := newFake(t, nil)
	f.Close()
	_, err := dialing(t, f.URL)
	require.ErrorContains(t, err, "connection refused")
}

func TestHeadersAndMetaOfModernVersions(t *testing.T) {
	headers := make(chan http.Header, 10)
	record := func(a answer) answer {
		return func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			headers <- r.Header.Clone()
			a(w, r, req)
		}
	}
	f := newFake(t, map[string]answer{"tools/call": record(raw("application/json", done("x")))})
	c := dial(t, f.URL, client.Header("Authorization", "Bearer t"), client.Info("me", "2.0"))
	_, err := c.CallTool(t.Context(), "naïve tool", map[string]any{"a": 1}, client.Meta("traceparent", "00-1"), client.LogLevel("info"))
	require.NoError(t, err)
	h := <-headers
	require.Equal(t, "2026-07-28", h.Get("MCP-Protocol-Version"))
	require.Equal(t, "tools/call", h.Get("Mcp-Method"))
	require.Equal(t, "=?base64?bmHDr3ZlIHRvb2w=?=", h.Get("Mcp-Name"))
	require.Equal(t, "application/json, text/event-stream", h.Get("Accept"))
	require.Equal(t, "Bearer t", h.Get("Authorization"))
	require.JSONEq(t, `{"name":"naïve tool","arguments":{"a":1},"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"me","version":"2.0"},
		"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info","traceparent":"00-1"}}`, string(f.all("tools/call")[0].Params))
}
