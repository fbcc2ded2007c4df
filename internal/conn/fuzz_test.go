package conn_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// fed is a wire from which one can read some messages, and then a last one when those were dealt
// with.
type fed struct {
	in     chan []byte
	out    strings.Builder // of the link's writer alone, and of the test after Serve
	closed chan struct{}
}

func (f *fed) Read() ([]byte, error) {
	select {
	case message, ok := <-f.in:
		if !ok {
			return nil, io.EOF
		}
		return message, nil
	case <-f.closed:
		return nil, io.EOF
	}
}

func (f *fed) Write(lines []byte) (int, error) { return f.out.Write(lines) }
func (f *fed) CloseRead() error                { return nil }
func (f *fed) Close() error                    { return nil }

// lines checks that all that was written is whole lines of JSON, and returns them.
func (f *fed) lines(t *testing.T) []json.RawMessage {
	text := f.out.String()
	if text == "" {
		return nil
	}
	require.True(t, strings.HasSuffix(text, "\n"), "%q", text)
	var all []json.RawMessage
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		require.True(t, json.Valid([]byte(line)), "%q", line)
		all = append(all, json.RawMessage(line))
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
	w := &fed{in: make(chan []byte, 2), closed: make(chan struct{})}
	l := conn.New(w, plain{}, &conn.Options{Client: true, Logger: slog.New(slog.DiscardHandler)})
	served := make(chan error, 1)
	go func() { served <- l.Serve(context.Background()) }()
	got := make(chan *jsonrpc.Response, 1)
	go func() {
		resp, err := l.Do(context.Background(), &jsonrpc.Request{ID: jsonrpc.NumberID(7), Method: "ask"})
		if err == nil {
			got <- resp
		}
		close(got)
	}()
	synctest.Wait()
	w.in <- []byte(message)
	w.in <- []byte(`{"jsonrpc":"2.0","id":7,"result":"right"}`)
	resp := <-got
	require.NotNil(t, resp, "the call did not end with an answer")
	require.Equal(t, jsonrpc.NumberID(7), resp.ID)
	close(w.in)
	require.NoError(t, <-served)

	b := jsonrpc.ReadBeginning([]byte(message))
	for _, line := range w.lines(t) {
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
	w := &fed{in: make(chan []byte, 2), closed: make(chan struct{})}
	l := conn.New(w, plain{}, &conn.Options{Logger: slog.New(slog.DiscardHandler), DrainTimeout: time.Minute})
	l.Session().SetVersion("2025-03-26")
	w.in <- []byte(batch)
	w.in <- []byte(request("last", "ping"))
	close(w.in)
	require.NoError(t, l.Serve(context.Background()))

	elements, isBatch, bad := jsonrpc.Batch([]byte(batch))
	want := 0 // requests
	for _, element := range elements {
		if m, _ := jsonrpc.Decode(element); m.Request != nil && !m.Request.IsNotification() {
			want++
		}
	}
	answered, arrays := 0, 0
	for _, line := range w.lines(t) {
		if line[0] != '[' {
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
	require.Contains(t, w.out.String(), `{"jsonrpc":"2.0","id":"last","result":{}}`)
}
