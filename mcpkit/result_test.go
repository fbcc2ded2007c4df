package mcpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"iter"
	"log/slog"
	"slices"
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

type point struct {
	X int `json:"x"`
}

// results has a tool for each kind of result.
type results struct{}

func (results) Nothing() error         { return nil }
func (results) Text() string           { return "a \"text\"\n" }
func (results) Struct() point          { return point{7} }
func (results) Pointer() *point        { return &point{8} }
func (results) NilPointer() *point     { return nil }
func (results) NilSlice() []point      { return nil }
func (results) NilMap() map[string]int { return nil }
func (results) Number() int64          { return 1<<53 + 1 }
func (results) Big() uint64            { return 1<<64 - 1 }
func (results) Truth() bool            { return false }
func (results) PNG() []byte            { return []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR") }
func (results) Plain() []byte          { return []byte("plain") }
func (results) Binary() mcpkit.Blob {
	return mcpkit.Blob{Data: []byte{0, 1}, MIMEType: "application/octet-stream", URI: "x://b"}
}
func (results) Picture() image.Image { return image.NewGray(image.Rect(0, 0, 1, 1)) }
func (results) Sound() *mcpkit.Audio { return &mcpkit.Audio{Data: []byte("ab"), MIMEType: "audio/wav"} }
func (results) Pointed() mcpkit.Link { return mcpkit.Link{URI: "x://l", Name: "l"} }
func (results) Reader() io.Reader    { return strings.NewReader("read") }
func (results) NilReader() io.Reader { return nil }
func (results) Contents() []mcpkit.Content {
	return []mcpkit.Content{mcpkit.Text("a"), nil, mcpkit.Text("b")}
}
func (results) Whole() *protocol.CallToolResult {
	return &protocol.CallToolResult{Content: []protocol.Content{mcpkit.Text("w")}, IsError: true}
}
func (results) Several() (point, mcpkit.Image, error) {
	return point{9}, mcpkit.Image{Data: []byte("i"), MIMEType: "image/png"}, nil
}
func (results) Any() any      { return []int{1} }
func (results) AnyNil() any   { return nil }
func (results) AnyError() any { return mcpkit.Errorf("no luck") }
func (results) Numbers() iter.Seq[int] {
	return func(yield func(int) bool) { _ = yield(1) && yield(2) }
}
func (results) Fails() iter.Seq2[int, error] {
	return func(yield func(int, error) bool) { _ = yield(1, nil) && yield(0, mcpkit.Errorf("no more")) }
}
func (results) GoesOn() iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range 3 {
			yield(i, mcpkit.Errorf("item %d", i))
			yield(i, nil)
		}
	}
}
func (results) Endless() iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(strings.Repeat("x", 100)) {
		}
	}
}
func (results) TooLarge() io.Reader            { return bytes.NewReader(make([]byte, 2000)) }
func (results) Told() error                    { return mcpkit.Errorf("tell %s", "them") }
func (results) Wrapped() error                 { return fmt.Errorf("outer: %w", mcpkit.Errorf("inner")) }
func (results) Secret() error                  { return errors.New("password is hunter2") }
func (results) Panic() string                  { panic("password is hunter2") }
func (results) Protocol() error                { return jsonrpc.Errorf(-32000, "as it is") }
func (results) ResultAndError() (point, error) { return point{1}, mcpkit.Errorf("no") }

func TestResultsOfEveryKind(t *testing.T) {
	srv := newServer(t, &results{}, mcpkit.MaxResultBytes(1000), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	for _, test := range []struct{ tool, want string }{
		{"nothing", `"content":[]`},
		{"text", `"content":[{"type":"text","text":"a \"text\"\n"}]`},
		{"struct", `"content":[{"type":"text","text":"{\"x\":7}"}],"structuredContent":{"x":7}`},
		{"pointer", `"content":[{"type":"text","text":"{\"x\":8}"}],"structuredContent":{"x":8}`},
		{"nil_pointer", `"content":[{"type":"text","text":"the tool returned no result and no error: it is a nil *mcpkit_test.point"}],"isError":true`},
		{"nil_slice", `"content":[{"type":"text","text":"[]"}],"structuredContent":[]`},
		{"nil_map", `"content":[{"type":"text","text":"{}"}],"structuredContent":{}`},
		{"number", `"content":[{"type":"text","text":"9007199254740993"}],"structuredContent":9007199254740993`},
		{"big", `"content":[{"type":"text","text":"18446744073709551615"}],"structuredContent":18446744073709551615`},
		{"truth", `"content":[{"type":"text","text":"false"}],"structuredContent":false`},
		{"png", `"content":[{"type":"image","data":"iVBORw0KGgoAAAANSUhEUg==","mimeType":"image/png"}]`},
		{"plain", `"content":[{"type":"text","text":"plain"}]`},
		{"binary", `"content":[{"type":"resource","resource":{"uri":"x://b","mimeType":"application/octet-stream","blob":"AAE="}}]`},
		{"sound", `"content":[{"type":"audio","data":"YWI=","mimeType":"audio/wav"}]`},
		{"pointed", `"content":[{"type":"resource_link","uri":"x://l","name":"l"}]`},
		{"reader", `"content":[{"type":"text","text":"read"}]`},
		{"nil_reader", `"content":[]`},
		{"contents", `"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
		{"whole", `"content":[{"type":"text","text":"w"}],"isError":true`},
		{"several", `"content":[{"type":"text","text":"{\"x\":9}"},{"type":"image","data":"aQ==","mimeType":"image/png"}],"structuredContent":{"x":9}`},
		{"any", `"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]`},
		{"any_nil", `"content":[]`},
		{"any_error", `"content":[{"type":"text","text":"no luck"}],"isError":true`},
		{"numbers", `"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]`},
		{"fails", `"content":[{"type":"text","text":"no more"}],"isError":true`},
		{"goes_on", `"content":[{"type":"text","text":"item 0"}],"isError":true`}, // as in its first error
		{"endless", `"content":[{"type":"text","text":"the result of tool \"endless\" is larger than 1000 bytes after 10 items"}],"isError":true`},
		{"too_large", `"content":[{"type":"text","text":"the result of tool \"too_large\" is larger than 1000 bytes"}],"isError":true`},
		{"told", `"content":[{"type":"text","text":"tell them"}],"isError":true`},
		{"wrapped", `"content":[{"type":"text","text":"inner"}],"isError":true`},
		{"result_and_error", `"content":[{"type":"text","text":"no"}],"isError":true`},
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
			srv := newServer(t, nil)
			require.NoError(t, srv.Add(mcpkit.NewTool("list", func(call *mcpkit.Call) iter.Seq[int] {
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

func TestStructuredOutputByVersion(t *testing.T) {
	srv := newServer(t, &results{})
	for _, test := range []struct {
		revision protocol.Version
		tool     string
		schema   string // of the output, in the list
		want     string // structuredContent
	}{
		{protocol.V20250326, "struct", "", ""},
		{protocol.V20250618, "struct", `{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`, `{"x":7}`},
		{protocol.V20250618, "numbers", `{"type":"object","properties":{"result":{"type":"array","items":{"type":"integer"}}},"required":["result"],"additionalProperties":false}`, `{"result":[1,2]}`},
		{protocol.V20251125, "truth", `{"type":"object","properties":{"result":{"type":"boolean"}},"required":["result"],"additionalProperties":false}`, `{"result":false}`},
		{protocol.V20260728, "truth", `{"type":"boolean"}`, `false`},
	} {
		t.Run(string(test.revision)+" "+test.tool, func(t *testing.T) {
			p := modern(t, srv)
			if !test.revision.Modern() {
				p = legacy(t, srv, test.revision)
			}
			require.Equal(t, test.want, member(t, p.result("tools/call", fmt.Sprintf(`{"name":%q}`, test.tool)), "structuredContent"))
			require.Equal(t, test.schema, outputSchemaIn(t, p, test.tool))
		})
	}
}

// outputSchemaIn returns the output schema of a tool as the list shows it.
func outputSchemaIn(t *testing.T, p *peer, tool string) string {
	var list protocol.ListToolsResult
	require.NoError(t, json.Unmarshal([]byte(p.result("tools/list", "{}")), &list))
	at := slices.IndexFunc(list.Tools, func(def protocol.Tool) bool { return def.Name == tool })
	return string(list.Tools[at].OutputSchema)
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

func TestProtocolErrorsPassThrough(t *testing.T) {
	err := modern(t, newServer(t, &results{})).fails("tools/call", `{"name":"protocol"}`)
	require.Equal(t, "as it is (code -32000)", err.Error())
}

// shelf has a resource for each kind of contents.
type shelf struct {
	_ struct {
		Text   mcpkit.Resource `uri:"s://text"`
		JSON   mcpkit.Resource `uri:"s://json"`
		Bytes  mcpkit.Resource `uri:"s://bytes"`
		Reader mcpkit.Resource `uri:"s://reader" mime:"text/csv"`
		Gone   mcpkit.Resource `uri:"s://gone"`
		Fails  mcpkit.Resource `uri:"s://fails"`
		Many   mcpkit.Resource `uri:"s://many"`
		Two    mcpkit.Resource `uri:"s://{a}/{+b}{?q,n}"`
	}
}

func (shelf) Text() string               { return "t" }
func (shelf) JSON() point                { return point{1} }
func (shelf) Bytes() []byte              { return []byte{0xff, 0xfe} }
func (shelf) Reader() (io.Reader, error) { return strings.NewReader("a,b"), nil }
func (shelf) Gone() (string, error)      { return "", fmt.Errorf("row 7: %w", mcpkit.ErrNotFound) }
func (shelf) Fails() (string, error)     { return "", errors.New("hunter2") }
func (shelf) Many() []protocol.ResourceContents {
	one, two := "1", "2"
	return []protocol.ResourceContents{{URI: "s://many/1", Text: &one}, {URI: "s://many/2", Text: &two}}
}
func (shelf) Two(in struct {
	A string `json:"a"`
	B string `json:"b"`
	Q string `json:"q,omitempty"`
	N int    `json:"n,omitempty"`
}) string {
	return fmt.Sprint(in.A, "|", in.B, "|", in.Q, "|", in.N)
}

func TestResourcesOfEveryKind(t *testing.T) {
	srv := newServer(t, &shelf{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	for _, test := range []struct{ uri, want string }{
		{"s://text", `[{"uri":"s://text","mimeType":"text/plain","text":"t"}]`},
		{"s://json", `[{"uri":"s://json","mimeType":"application/json","text":"{\"x\":1}"}]`},
		{"s://bytes", `[{"uri":"s://bytes","mimeType":"text/plain; charset=utf-16le","blob":"//4="}]`},
		{"s://reader", `[{"uri":"s://reader","mimeType":"text/csv","text":"a,b"}]`},
		{"s://many", `[{"uri":"s://many/1","text":"1"},{"uri":"s://many/2","text":"2"}]`},
		{"s://x/y/z?n=5&q=w%20w", `[{"uri":"s://x/y/z?n=5&q=w%20w","mimeType":"text/plain","text":"x|y/z|w w|5"}]`},
	} {
		t.Run(test.uri, func(t *testing.T) {
			require.Equal(t, test.want, member(t, modern(t, srv).result("resources/read", fmt.Sprintf(`{"uri":%q}`, test.uri)), "contents"))
		})
	}
	t.Run("not found", func(t *testing.T) {
		for _, uri := range []string{"s://gone", "s://nothing", "s://x/../y", "s://x/%2e%2e/y", "other:"} {
			err := modern(t, srv).fails("resources/read", fmt.Sprintf(`{"uri":%q}`, uri))
			require.Equal(t, fmt.Sprintf("resource %q not found (code -32602)", uri), err.Error())
			require.JSONEq(t, fmt.Sprintf(`{"uri":%q}`, uri), string(err.Data))
			require.Equal(t, protocol.CodeResourceNotFound, legacy(t, srv, protocol.V20251125).fails("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)).Code)
		}
	})
	t.Run("internal errors say nothing", func(t *testing.T) {
		require.Regexp(t, `^internal error \(ref [A-Z0-9]{10}\) \(code -32603\)$`, modern(t, srv).fails("resources/read", `{"uri":"s://fails"}`).Error())
	})
	t.Run("a variable of the wrong type", func(t *testing.T) {
		err := modern(t, srv).fails("resources/read", `{"uri":"s://x/y?n=five"}`)
		require.Equal(t, jsonrpc.CodeInvalidParams, err.Code)
		require.Contains(t, err.Message, "/n: got")
	})
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
