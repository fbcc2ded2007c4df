package streamable

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPOST sends any body with any of the header fields that routing reads. There is always one
// valid reply, and the next valid request is answered.
func FuzzPOST(f *testing.F) {
	for _, body := range []string{
		call1(7, "talk"), call1(1, "echo"), `[` + call1(1, "echo") + `,` + call1(2, "talk") + `]`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`,
		`[1,{}]`, `{"jsonrpc":"2.0","id":1,"method":"echo","params":{"_meta":null}}`, `{"id":`, ``,
	} {
		f.Add(body, "2026-07-28", "", "application/json, text/event-stream")
		f.Add(body, "", "SESSION", "application/json, text/event-stream")
		f.Add(body, "2025-03-26", "SESSION", "*/*")
		f.Add(body, "v999", "unknown", "application/json;q=0")
	}
	h := NewHandler(&scripted{methods: script{"talk": talkative}}, nil)
	f.Cleanup(h.Close)
	open := httptest.NewRecorder()
	h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`))
	session := open.Header().Get("Mcp-Session-Id")
	f.Fuzz(func(t *testing.T, body, version, id, accept string) {
		if id == "SESSION" {
			id = session
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, newPost(body, "MCP-Protocol-Version", version, "Mcp-Session-Id", id, "Accept", accept))
		switch w.Header().Get("Content-Type") {
		case "application/json":
			require.True(t, json.Valid(w.Body.Bytes()), "%q", w.Body.String())
		case "text/event-stream":
			require.Equal(t, http.StatusOK, w.Code)
		default:
			require.Equal(t, http.StatusAccepted, w.Code)
			require.Empty(t, w.Body.String())
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, newPost(call1(4711, "echo"), "Mcp-Session-Id", session))
		require.Equal(t, `{"jsonrpc":"2.0","id":4711,"result":{"a":1}}`, w.Body.String())
		require.True(t, free(h), "nothing is held")
	})
}

func FuzzEventID(f *testing.F) {
	f.Add("0-0")
	f.Add("1-18446744073709551615")
	f.Add("--")
	f.Fuzz(func(t *testing.T, s string) {
		if name, seq, ok := parseEventID(s); ok {
			again, seqAgain, ok := parseEventID(eventID(&stream{name: name}, seq))
			require.True(t, ok)
			require.Equal(t, name, again)
			require.Equal(t, seq, seqAgain)
		}
	})
}
