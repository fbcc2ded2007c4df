package streamable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// keyed returns a handler of a server with the key.
func keyed(t *testing.T, key string, opts *Options) *Handler {
	t.Helper()
	srv := mcpkit.MustNew(&desk{}, mcpkit.Name("desk", "1"), mcpkit.StateKeys([]byte(strings.Repeat(key, 32))))
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	h := NewHandler(srv, opts)
	t.Cleanup(h.Close)
	return h
}

// begin opens a session for a user, or nobody.
func begin(t *testing.T, h *Handler, user string) (id string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, as(user, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+canElicit+`}}`)))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Header().Get("Mcp-Session-Id")
}

func as(user string, r *http.Request) *http.Request {
	if user == "" {
		return r
	}
	return r.WithContext(oauth.NewContext(r.Context(), &oauth.Principal{Subject: user}))
}

// status sends a request in a session and returns its status.
func status(h *Handler, user, id, body string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, as(user, newPost(body, "Mcp-Session-Id", id)))
	return w.Code
}

const (
	pingBody     = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	setLevelBody = `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`
)

func TestSessionsOutliveTheProcess(t *testing.T) {
	id := begin(t, keyed(t, "k", nil), "ann")
	require.LessOrEqual(t, len(id), 256)
	again := keyed(t, "k", nil)
	require.Equal(t, http.StatusOK, status(again, "ann", id, pingBody))
	require.Equal(t, http.StatusNotFound, status(keyed(t, "x", nil), "ann", id, pingBody), "other keys")
}

func TestSessionIDsAreShort(t *testing.T) {
	h := keyed(t, "k", nil)
	long := strings.Repeat("n", 1000)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"`+long+`","version":"`+long+`"}}}`))
	id := w.Header().Get("Mcp-Session-Id")
	require.LessOrEqual(t, len(id), 256)
	require.Equal(t, http.StatusOK, status(h, "", id, pingBody))
}

func TestSessionsThatAreNotOpened(t *testing.T) {
	h := keyed(t, "k", nil)
	id := begin(t, h, "ann")
	middle := len(id) / 2
	changed := "A"
	if id[middle] == 'A' {
		changed = "B"
	}
	for name, bad := range map[string]string{
		"made up": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "long": strings.Repeat("A", 5000), "cut": id[:len(id)-4], "changed": id[:middle] + changed + id[middle+1:],
		"with a line break": id[:4] + "\n" + id[4:], "with more": id + "AAAA",
	} {
		require.Equal(t, http.StatusNotFound, status(h, "ann", bad, pingBody), name)
	}
	for _, other := range []string{"bob", ""} {
		require.Equal(t, http.StatusNotFound, status(h, other, id, pingBody), "another caller: %q", other)
	}
	require.Equal(t, http.StatusNotFound, status(h, "ann", begin(t, h, ""), pingBody), "the session of nobody")
	require.Equal(t, http.StatusOK, status(h, "ann", id, pingBody))
}

func TestHandlersThatStoreNoSessionsAreStateless(t *testing.T) {
	h := NewHandler(struct{ transport.Handler }{silentRPC{}}, nil)
	require.Empty(t, begin(t, h, ""))
	require.Equal(t, http.StatusOK, status(h, "", "", pingBody))
}

func TestSessionsLiveForAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(silentRPC{}, nil)
		defer h.Close()
		id := begin(t, h, "")
		time.Sleep(7*24*time.Hour - time.Second)
		require.Equal(t, http.StatusOK, status(h, "", id, pingBody))
		time.Sleep(2 * time.Second)
		require.Equal(t, http.StatusNotFound, status(h, "", id, pingBody))
	})
}

func TestDeletedSessionsStayDeleted(t *testing.T) {
	h := keyed(t, "k", nil)
	id := begin(t, h, "")
	r := newPost("", "Mcp-Session-Id", id)
	r.Method = http.MethodDelete
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Equal(t, http.StatusNotFound, status(h, "", id, pingBody))
	for range maxDeleted + 10 {
		h.sessions.end(begin(t, h, ""))
	}
	require.Equal(t, maxDeleted, h.sessions.deleted.Len())
}

func TestTheSessionThatWasIdleLongestIsDropped(t *testing.T) {
	h := keyed(t, "k", &Options{MaxSessions: 2})
	changed, other := begin(t, h, ""), begin(t, h, "")
	require.Equal(t, http.StatusOK, status(h, "", changed, setLevelBody))
	require.Equal(t, http.StatusOK, status(h, "", other, setLevelBody))
	require.Equal(t, http.StatusOK, status(h, "", changed, pingBody))
	third := begin(t, h, "")
	require.Equal(t, http.StatusOK, status(h, "", third, setLevelBody))
	require.Equal(t, http.StatusNotFound, status(h, "", other, pingBody), "its log level was only here, so it ended")
	require.Equal(t, http.StatusOK, status(h, "", changed, pingBody))
	require.Equal(t, http.StatusOK, status(h, "", third, pingBody))
	require.Len(t, h.sessions.all, 2)
}

func TestSessionsInUseAreNotDropped(t *testing.T) {
	h := keyed(t, "k", &Options{MaxSessions: 2})
	ids := []string{begin(t, h, ""), begin(t, h, ""), begin(t, h, "")}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := range 3000 {
				s, refusal := h.sessions.use(ids[i%len(ids)], (*oauth.Principal)(nil).Key())
				if !assert.Nil(t, refusal) {
					return
				}
				q, err := s.ledger.Ask(jsonrpc.ID{})
				if !assert.NoError(t, err, "a session in use has not ended") {
					return
				}
				q.End()
				h.sessions.release(s)
			}
		})
	}
	workers.Wait()
}

func TestSessionsInUseAreLimited(t *testing.T) {
	g := newGate()
	h := NewHandler(&scripted{methods: script{"wait": g.serve}}, &Options{MaxSessions: 1})
	defer h.Close()
	one, two := begin(t, h, ""), begin(t, h, "")
	ended := make(chan int)
	go func() { ended <- status(h, "", one, call1(1, "wait")) }() // ends with the call
	<-g.started
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newPost(pingBody, "Mcp-Session-Id", two))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "60", w.Header().Get("Retry-After"))
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"too many sessions; try again later"}}`, w.Body.String())
	close(g.release)
	require.Equal(t, http.StatusOK, <-ended)
	require.Equal(t, http.StatusOK, status(h, "", two, call1(1, "echo")))
}

// agree packs what initialize agreed on and unpacks it.
func agree(t *testing.T, p protocol.InitializeParams, extensions []string) (got protocol.InitializeParams) {
	agreed, err := json.Marshal(p)
	require.NoError(t, err)
	text := packAgreement(agreed, extensions)
	require.LessOrEqual(t, len(text), 148)
	again, err := unpackAgreement(text, extensions)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(again, &got))
	return got
}

func TestAgreementsKeepWhatServersUse(t *testing.T) {
	for declared, kept := range map[string]string{
		`{}`: `{}`,
		`{"roots":{},"sampling":{},"elicitation":{}}`:                          `{"roots":{},"sampling":{},"elicitation":{}}`,
		`{"roots":{"listChanged":false},"elicitation":{"form":{"x":1}}}`:       `{"roots":{},"elicitation":{"form":{}}}`,
		`{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}}}`:  `{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`,
		`{"elicitation":{"url":{}},"extensions":{"a.b/c":{"x":1},"d.e/f":{}}}`: `{"elicitation":{"url":{}},"extensions":{"a.b/c":{}}}`,
	} {
		p := protocol.InitializeParams{ProtocolVersion: protocol.V20250618}
		p.ClientInfo = protocol.Implementation{Name: "x" + strings.Repeat("ä", 40), Version: "1"}
		require.NoError(t, json.Unmarshal([]byte(declared), &p.Capabilities))
		got := agree(t, p, []string{"other/x", "a.b/c"})
		require.Equal(t, protocol.V20250618, got.ProtocolVersion)
		require.Equal(t, protocol.Implementation{Name: "x" + strings.Repeat("ä", 31), Version: "1"}, got.ClientInfo, "64 bytes, without a part of a character")
		again, err := json.Marshal(got.Capabilities)
		require.NoError(t, err)
		require.JSONEq(t, kept, string(again))
	}
}

func TestDamagedAgreementsAreRefused(t *testing.T) {
	whole := packAgreement([]byte(`{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"n","version":"v"}}`), nil)
	for n := range len(whole) {
		_, err := unpackAgreement(whole[:n], nil)
		require.EqualError(t, err, "streamable: the session is not one that this server stored")
	}
	_, err := unpackAgreement(bytes.Replace(whole, []byte(`"v":`), []byte(`"v":9`), 1), nil)
	require.Error(t, err)
}

func TestAgreementsAlwaysFitIntoAnID(t *testing.T) {
	var extensions []string
	p := protocol.InitializeParams{ProtocolVersion: protocol.V20251125}
	p.ClientInfo = protocol.Implementation{Name: strings.Repeat("\x00", 64), Version: strings.Repeat("v", 64)}
	p.Capabilities.Extensions = map[string]protocol.Object{}
	for n := range 40 {
		extensions = append(extensions, fmt.Sprintf("example.com/%d", n))
		p.Capabilities.Extensions[extensions[n]] = protocol.Object{}
	}
	require.Len(t, agree(t, p, extensions).Capabilities.Extensions, 8)
}
