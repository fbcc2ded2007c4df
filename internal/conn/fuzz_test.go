package conn_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// lines checks that all that was written is whole lines of JSON, and returns them.
func (p *peer) lines() (all []json.RawMessage) {
	close(p.wire.out)
	var text string
	for part := range p.wire.out {
		text += part
	}
	require.True(p.t, text == "" || strings.HasSuffix(text, "\n"), "%q", text)
	for line := range strings.Lines(text) {
		require.True(p.t, json.Valid([]byte(line)), "%q", line)
		all = append(all, json.RawMessage(strings.TrimSpace(line)))
	}
	return all
}

// plain answers everything.
type plain struct{}

func (plain) ServeRPC(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Result: []byte(`{}`)}
}

// A client asks, and the server answers with anything: then the call ends with an answer or when
// the right one comes, and the client sends nothing to a message that is not a request.
func FuzzResponsesToAClient(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":7}`,
		`{"jsonrpc":"2.0","id":"7","result":{}}`, `{"jsonrpc":"2.0","id":7,"Result":{}}`, `{"jsonrpc":"2.0","id":7,"result":` + strings.Repeat("[", 200),
		`{"jsonrpc":"2.0","id":7,"result":"` + "\xff", `{"jsonrpc":"2.0","id":7,"result":"abc` + "\x18", `{"jsonrpc":"2.0","id":7,"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":7,"result":{}}]`, `{"jsonrpc":"2.0","id":7,"id":8,"result":{}}`, `null`, ``,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		synctest.Test(t, func(t *testing.T) { checkResponse(t, message) })
	})
}

func checkResponse(t *testing.T, message string) {
	p := serve(t, plain{}, &conn.Options{Client: true})
	got := make(chan *jsonrpc.Response, 1)
	go func() {
		resp, err := p.link.Do(context.Background(), &jsonrpc.Request{ID: jsonrpc.NumberID(7), Method: "ask"})
		if err == nil {
			got <- resp
		}
		close(got)
	}()
	synctest.Wait()
	p.send(message, `{"jsonrpc":"2.0","id":7,"result":"right"}`)
	resp := <-got
	require.NotNil(t, resp, "the call did not end with an answer")
	require.Equal(t, jsonrpc.NumberID(7), resp.ID)
	close(p.wire.in)
	require.NoError(t, <-p.over)

	b := jsonrpc.ReadBeginning([]byte(message))
	for _, line := range p.lines() {
		var sent struct{ Method string }
		require.NoError(t, json.Unmarshal(line, &sent))
		require.True(t, sent.Method == "ask" || b.Request, "%s answers %q", line, message)
	}
}

// Each request of a batch is answered once, whatever stands beside it.
func FuzzBatches(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[1]`, `[{"jsonrpc":"2.0","id":1,"method":"a"}]`, `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":1,"method":"a"}]`,
		`[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":1,"result":{}}]`, `[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, `[[]]`, `[`,
		`[{"jsonrpc":"2.0","id":1},{"jsonrpc":"2.0","id":2,"result":` + strings.Repeat("[", 130) + strings.Repeat("]", 130) + `}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, batch string) {
		synctest.Test(t, func(t *testing.T) { checkBatch(t, batch) })
	})
}

func checkBatch(t *testing.T, batch string) {
	p := serve(t, plain{}, &conn.Options{DrainTimeout: time.Minute})
	p.link.Session().SetVersion("2025-03-26")
	p.send(batch, request("last", "ping"))
	close(p.wire.in)
	require.NoError(t, <-p.over)

	elements, isBatch, bad := jsonrpc.Batch([]byte(batch))
	want := 0 // requests
	for _, element := range elements {
		if m, _ := jsonrpc.Decode(element); m.Request != nil && !m.Request.IsNotification() {
			want++
		}
	}
	answered, arrays, last := 0, 0, false
	for _, line := range p.lines() {
		if line[0] != '[' {
			last = last || string(line) == `{"jsonrpc":"2.0","id":"last","result":{}}`
			continue
		}
		arrays++
		var all []struct {
			ID     json.RawMessage
			Result json.RawMessage
			Error  json.RawMessage
		}
		require.NoError(t, json.Unmarshal(line, &all))
		require.NotEmpty(t, all)
		for _, one := range all {
			require.NotEqual(t, one.Result == nil, one.Error == nil, "%s", line)
		}
		answered += len(all)
	}
	if isBatch && bad == nil {
		require.LessOrEqual(t, arrays, 1)
		if !strings.Contains(batch, "cancelled") {
			require.GreaterOrEqual(t, answered, want)
		}
		require.LessOrEqual(t, answered, len(elements))
	}
	require.True(t, last)
}
