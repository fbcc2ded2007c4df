package mcpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// results has tools with unusual results; those of the oracle are the usual ones.
type results struct{}

func (results) Text() string         { return "a \"text\"\n" }
func (results) NilReader() io.Reader { return nil }
func (results) Contents() []mcpkit.Content {
	return []mcpkit.Content{mcpkit.Text("a"), nil, mcpkit.Text("b")}
}
func (results) AnyNil() any   { return nil }
func (results) AnyError() any { return mcpkit.Errorf("no luck") }
func (results) GoesOn() iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range 3 {
			yield(i, mcpkit.Errorf("item %d", i))
			yield(i, nil)
		}
	}
}
func (results) TooLarge() io.Reader { return bytes.NewReader(make([]byte, 2000)) }
func (results) Secret() error       { return errors.New("password is hunter2") }
func (results) Panic() string       { panic("password is hunter2") }

func TestUnusualResults(t *testing.T) {
	srv := newServer(t, &results{}, mcpkit.MaxResultBytes(1000), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	for _, test := range []struct{ tool, want string }{
		{"nil_reader", `"content":[]`},
		{"contents", `"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
		{"any_nil", `"content":[]`},
		{"any_error", `"content":[{"type":"text","text":"no luck"}],"isError":true`},
		{"goes_on", `"content":[{"type":"text","text":"item 0"}],"isError":true`}, // as in its first error
		{"too_large", `"content":[{"type":"text","text":"the result of tool \"too_large\" is larger than 1000 bytes"}],"isError":true`},
	} {
		t.Run(test.tool, func(t *testing.T) {
			got := modern(t, srv).result("tools/call", fmt.Sprintf(`{"name":%q}`, test.tool))
			require.Equal(t, "{"+test.want+`,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"results","version":"0.0.0"}}}`, got)
		})
	}
}

// closings counts how often it was closed.
type closings struct {
	io.Reader
	n int
}

func (c *closings) Close() error { c.n++; return nil }

func TestReadersBehindAFaultyOneAreClosed(t *testing.T) {
	srv := newServer(t, nil)
	var first, last *closings
	broken := func() (io.Reader, io.Reader) {
		first, last = &closings{Reader: iotest.ErrReader(errors.New("bad disk"))}, &closings{Reader: strings.NewReader("x")}
		return first, last
	}
	missing := func() (io.Reader, io.Reader) {
		first, last = &closings{Reader: strings.NewReader("x")}, nil
		return first, nil
	}
	failed := func() (any, io.Reader) {
		first, last = &closings{n: 1}, &closings{Reader: strings.NewReader("x")}
		return errors.New("no luck"), last
	}
	require.NoError(t, srv.Add(mcpkit.NewTool("broken", broken), mcpkit.NewTool("failed", failed), mcpkit.NewResource("doc://broken", "broken", broken), mcpkit.NewResource("doc://missing", "missing", missing)))
	for _, request := range [][2]string{{"tools/call", `{"name":"broken"}`}, {"tools/call", `{"name":"failed"}`}, {"resources/read", `{"uri":"doc://broken"}`}, {"resources/read", `{"uri":"doc://missing"}`}} {
		p := legacy(t, srv, protocol.V20251125)
		resp := p.rpc(t.Context(), p.request(request[0], request[1]))
		require.True(t, resp.Error != nil || strings.Contains(string(resp.Result), `"isError":true`), request)
		require.Equal(t, 1, first.n, request)
		if last != nil {
			require.Equal(t, 1, last.n, request)
		}
	}
}

// The items of an iterator are counted as progress, unless the method itself reports it.
func TestIteratorsReportProgress(t *testing.T) {
	for own, want := range map[bool][]string{false: {"1", "2", "3", "4"}, true: {"0.25", "0.5", "0.75", "1"}} {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer(t, nil, mcpkit.Items(mcpkit.NewTool("list", func(call *mcpkit.Call) iter.Seq[int] {
				return func(yield func(int) bool) {
					for i := range 4 {
						time.Sleep(time.Second)
						if own {
							call.Progress(float64(i+1)/4, 1, "")
						}
						if !yield(i) {
							return
						}
					}
				}
			})))
			p := modern(t, srv)
			params := strings.Replace(withMeta(`{"name":"list"}`), `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
			require.Contains(t, p.raw(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`), "[0,1,2,3]")
			var got []string
			for _, n := range p.take() {
				got = append(got, member(t, n, "params", "progress"))
			}
			require.Equal(t, want, got)
		})
	}
}

func TestErrorsNotMeantForTheCallerGoToTheLog(t *testing.T) {
	for _, tool := range []string{"secret", "panic"} {
		t.Run(tool, func(t *testing.T) {
			var log bytes.Buffer
			srv := newServer(t, &results{}, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
			got := member(t, modern(t, srv).result("tools/call", fmt.Sprintf(`{"name":%q}`, tool)), "content")
			require.Regexp(t, `^\[\{"type":"text","text":"internal error \(ref [A-Z0-9]{10}\)"\}\]$`, got)
			require.Contains(t, log.String(), "password is hunter2")
			ref := got[strings.Index(got, "ref ")+4:][:10]
			require.Contains(t, log.String(), "ref="+ref, "the log has what the caller was told")
		})
	}
}

func TestPanicsAreLoggedAlsoIfClientsSeeThem(t *testing.T) {
	var log bytes.Buffer
	srv := newServer(t, &results{}, mcpkit.ExposeErrors(), mcpkit.Logger(slog.New(slog.NewJSONHandler(&log, nil))))
	got := member(t, modern(t, srv).result("tools/call", `{"name":"panic"}`), "content")
	require.Contains(t, got, "password is hunter2")
	var entry struct{ Msg string }
	require.NoError(t, json.Unmarshal(log.Bytes(), &entry))
	require.Regexp(t, `^mcpkit: a call failed with an error that the caller does not see
github.com/mcpkit/mcpkit-go/mcpkit_test.results.Panic\(\.\.\.\)
	/\S+/result_test.go:\d+
$`, entry.Msg)
}

type waits struct{}

func (w *waits) ForTheEnd(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("waiting: %w", ctx.Err())
}

func (w *waits) ForNothing() error { return context.Canceled }

func TestCancelledCallsAreNotLoggedAsErrors(t *testing.T) {
	var log bytes.Buffer
	srv := newServer(t, &waits{}, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	p := modern(t, srv)
	require.NoError(t, srv.Start(t.Context())) // the first call is cancelled already and would not wait for the start
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := p.raw(ctx, p.request("tools/call", `{"name":"for_the_end"}`))
	require.Contains(t, got, `"content":[{"type":"text","text":"the call was cancelled"}],"isError":true`)
	require.Empty(t, log.String())

	require.Contains(t, p.result("tools/call", `{"name":"for_nothing"}`), "internal error (ref ")
	require.Contains(t, log.String(), `error="context canceled"`, "the caller did not cancel")
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text } // panics for nil

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("hunter2") }

type treacherous struct{}

func (treacherous) TypedNil() error    { var e *nilError; return e }
func (treacherous) BadResult() badJSON { return badJSON{} }

func TestErrorsAndResultsThatPanicEndTheCallOnly(t *testing.T) {
	srv := newServer(t, &treacherous{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.Regexp(t, `^internal error \(ref [A-Z0-9]{10}\) \(code -32603\)$`, modern(t, srv).fails("tools/call", `{"name":"typed_nil"}`).Error())
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"bad_result"}`), "internal error (ref ")
}

func TestANilResultOfMiddlewareIsLogged(t *testing.T) {
	var log bytes.Buffer
	srv := newServer(t, &results{}, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	srv.Use(func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { return (*mcpkit.CallToolResult)(nil), nil }
	})
	require.ErrorContains(t, modern(t, srv).fails("tools/call", `{"name":"text"}`), "internal error (ref ")
	require.Contains(t, log.String(), `error="the result is a nil *protocol.CallToolResult"`)
}

func TestInvalidJSONFromAMethodNeverReachesTheClient(t *testing.T) {
	var none *jsonrpc.Error
	var log bytes.Buffer
	srv, err := mcpkit.New(nil, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	require.NoError(t, srv.Add(
		mcpkit.NewTool("whole", func() *protocol.CallToolResult {
			return &protocol.CallToolResult{StructuredContent: []byte("{\"a\":\noops")}
		}),
		mcpkit.NewTool("data", func() error { return &jsonrpc.Error{Code: -7, Message: "seven", Data: []byte("oops\n")} }),
		mcpkit.NewTool("nil", func() error { return none }),
	))
	for _, test := range []struct{ name, want, log string }{
		{"whole", `"error":{"code":-32603,"message":"internal error (ref `, "structuredContent: not valid JSON"},
		{"data", `"error":{"code":-7,"message":"seven"}`, "mcpkit: the data of an error is not valid JSON and is left out"},
		{"nil", `"error":{"code":-32603,"message":"internal error (ref `, "mcpkit: a result or an error panicked"},
	} {
		p := modern(t, srv)
		got := p.raw(t.Context(), p.request("tools/call", fmt.Sprintf(`{"name":%q}`, test.name)))
		require.True(t, json.Valid([]byte(got)), "%s: %s", test.name, got)
		require.Contains(t, got, test.want, test.name)
		require.Contains(t, log.String(), test.log, test.name)
		log.Reset()
	}
}

func TestStructuredContentWithBlanksInFrontIsStillAnObject(t *testing.T) {
	srv, err := mcpkit.New(nil)
	require.NoError(t, err)
	require.NoError(t, srv.Add(mcpkit.NewTool("padded", func() *protocol.CallToolResult {
		return &protocol.CallToolResult{StructuredContent: []byte(" {\"a\":1}")}
	})))
	p := legacy(t, srv, protocol.V20251125)
	got := p.raw(t.Context(), p.request("tools/call", `{"name":"padded"}`))
	require.Contains(t, got, `"structuredContent": {"a":1}`)
}
