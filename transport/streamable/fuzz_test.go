package streamable

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
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
	open := newRecorder()
	h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`))
	session := open.Header().Get("Mcp-Session-Id")
	f.Fuzz(func(t *testing.T, body, version, id, accept string) {
		if id == "SESSION" {
			id = session
		}
		w := newRecorder()
		h.ServeHTTP(w, newPost(body, "MCP-Protocol-Version", version, "Mcp-Session-Id", id, "Accept", accept))
		switch w.Header().Get("Content-Type") {
		case "application/json":
			require.True(t, json.Valid(w.body.Bytes()), "%q", w.body.String())
		case "text/event-stream":
			require.Equal(t, http.StatusOK, w.status)
		default:
			require.Equal(t, http.StatusAccepted, w.status)
			require.Empty(t, w.body.String())
		}
		w = newRecorder()
		h.ServeHTTP(w, newPost(call1(4711, "echo"), "Mcp-Session-Id", session))
		require.Equal(t, `{"jsonrpc":"2.0","id":4711,"result":{"a":1}}`, w.body.String())
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

// FuzzBatch sends a batch of any elements. There is one reply, with at most one response for each
// request and no others.
func FuzzBatch(f *testing.F) {
	for _, elements := range []string{
		call1(1, "echo"), call1(1, "echo") + "," + call1(1, "echo"), call1(1, "talk") + "," + call1(2, "echo"),
		`{"jsonrpc":"2.0","method":"n"}`, `{"jsonrpc":"2.0","method":"n","params":[]}`, `1,"x",null,[],{}`, ``, `,`, `[` + call1(1, "echo") + `]`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}},` + call1(2, "talk"),
		call1(0, "initialize"), strings.Repeat(call1(1, "echo")+",", 100) + call1(2, "echo"),
	} {
		f.Add(elements, true)
		f.Add(elements, false)
	}
	h := NewHandler(&scripted{methods: script{"talk": talkative}}, nil)
	f.Cleanup(h.Close)
	open := newRecorder()
	h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`))
	session := open.Header().Get("Mcp-Session-Id")
	f.Fuzz(func(t *testing.T, elements string, streams bool) {
		accept := "application/json"
		if streams {
			accept += ", text/event-stream"
		}
		w := newRecorder()
		h.ServeHTTP(w, newPost("["+elements+"]", "Mcp-Session-Id", session, "Accept", accept))
		asked := map[string]int{}
		parsed, isBatch, _ := jsonrpc.Batch([]byte("[" + elements + "]"))
		for _, element := range parsed {
			if m, bad := jsonrpc.Decode(element); bad == nil && m.Request != nil && !m.Request.IsNotification() {
				asked[m.Request.ID.String()]++
			}
		}
		for _, answer := range answersOf(t, w) {
			m, bad := jsonrpc.Decode(answer)
			if bad != nil || m.Response == nil {
				continue // a notification, or an error without an ID
			}
			if !m.Response.ID.IsValid() {
				continue
			}
			id := m.Response.ID.String()
			if isBatch && m.Response.Error == nil {
				asked[id]--
				require.GreaterOrEqual(t, asked[id], 0, "%s is answered more often than asked", id)
			}
		}
		w = newRecorder()
		h.ServeHTTP(w, newPost(call1(4711, "echo"), "Mcp-Session-Id", session))
		require.Equal(t, `{"jsonrpc":"2.0","id":4711,"result":{"a":1}}`, w.body.String())
		require.True(t, h.bytes.Take(h.bytes.Max), "nothing is held")
		h.bytes.Give(h.bytes.Max)
	})
}

// answersOf returns the messages of a reply.
func answersOf(t *testing.T, w *recorder) (messages []json.RawMessage) {
	t.Helper()
	switch w.Header().Get("Content-Type") {
	case "application/json":
		raw := w.body.Bytes()
		require.True(t, json.Valid(raw), "%q", raw)
		if json.Unmarshal(raw, &messages) != nil {
			messages = []json.RawMessage{raw}
		}
	case "text/event-stream":
		r := sse.NewReader(bytes.NewReader(w.body.Bytes()), 0)
		for {
			ev, err := r.Next()
			if err != nil {
				require.Equal(t, io.EOF, err)
				return messages
			}
			if len(ev.Data) > 0 {
				messages = append(messages, ev.Data)
			}
		}
	default:
		require.Equal(t, http.StatusAccepted, w.status)
		require.Empty(t, w.body.String())
	}
	return messages
}
