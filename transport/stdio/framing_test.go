package stdio_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// framed gives each line a header.
func framed(lines string) string {
	var out strings.Builder
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		fmt.Fprintf(&out, "Content-Length: %d\r\n\r\n%s", len(line), line)
	}
	return out.String()
}

// each splits the output into responses with their framing: two responses may come in any order.
func each(out string) []string {
	out = strings.ReplaceAll(out, "Content-Length: ", "\x00Content-Length: ")
	return strings.FieldsFunc(strings.ReplaceAll(out, "}\n", "}\n\x00"), func(r rune) bool { return r == 0 })
}

func TestFramesWithHeaders(t *testing.T) {
	pretty := "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1, \"method\": \"ping\"\n}"
	for _, test := range []struct {
		name    string
		framing stdio.Framing
		in      string
		want    string
		err     string
	}{
		{name: "empty input", framing: stdio.ContentLength},
		{name: "two", framing: stdio.ContentLength, in: framed(ping(1) + "\n" + ping(2)), want: framed(pong(1) + pong(2))},
		{name: "several lines", framing: stdio.ContentLength, in: "Content-Length: " + strconv.Itoa(len(pretty)) + "\r\n\r\n" + pretty, want: framed(pong(1))},
		{name: "other fields, other case, bare line feeds", framing: stdio.ContentLength,
			in: "Content-Type: application/json\ncontent-length:40\n\n" + ping(1), want: framed(pong(1))},
		{name: "blank lines between", framing: stdio.ContentLength, in: "\r\n" + framed(ping(1)) + "\r\n\n" + framed(ping(2)) + "\r\n", want: framed(pong(1) + pong(2))},
		{name: "not JSON", framing: stdio.ContentLength, in: framed("garbage\n" + ping(1)),
			want: framed(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid JSON: invalid character 'g' at start of value"}}` + "\n" + pong(1))},
		{name: "too large", framing: stdio.ContentLength, in: framed(strings.Repeat("x", 70_000) + "\n" + ping(2)), want: framed(tooLarge + pong(2))},
		{name: "empty", framing: stdio.ContentLength, in: "Content-Length: 0\r\n\r\n" + framed(ping(1)), want: framed(pong(1))},
		{name: "cut in the header", framing: stdio.ContentLength, in: framed(ping(1)) + "Content-Length: 5\r\n", want: framed(pong(1)),
			err: `transport/stdio: the header of a message has the line ""; want a field like Content-Length: 17`},
		{name: "cut in the message", framing: stdio.ContentLength, in: framed(ping(1)) + "Content-Length: 5\r\n\r\n{", want: framed(pong(1)), err: "transport/stdio: unexpected EOF"},
		{name: "no length", framing: stdio.ContentLength, in: strings.Repeat("a: b\r\n\r\n", 70_000), err: "transport/stdio: the header of a message has too many lines, or no Content-Length"},
		{name: "negative length", framing: stdio.ContentLength, in: "Content-Length: -1\r\n\r\n", err: `transport/stdio: the header of a message has the line "Content-Length: -1"; want a field like Content-Length: 17`},
		{name: "enormous length", framing: stdio.ContentLength, in: "Content-Length: 4294967296\r\n\r\n", err: `transport/stdio: the header of a message has the line "Content-Length: 4294967296"; want a field like Content-Length: 17`},
		{name: "a line instead of a header", framing: stdio.ContentLength, in: "hello\n", err: `transport/stdio: the header of a message has the line "hello"; want a field like Content-Length: 17`},
		{name: "an endless field", framing: stdio.ContentLength, in: strings.Repeat("x", 70_000),
			err: fmt.Sprintf("transport/stdio: the header of a message has the line %.60q"+`; want a field like Content-Length: 17`, strings.Repeat("x", 60))},
		{name: "any, lines", framing: stdio.AnyFraming, in: " \n" + ping(1) + "\n" + ping(2) + "\n", want: pong(1) + pong(2)},
		{name: "any, headers", framing: stdio.AnyFraming, in: framed(ping(1) + "\n" + ping(2)), want: framed(pong(1) + pong(2))},
		{name: "any, empty input", framing: stdio.AnyFraming, in: " \n"},
		{name: "lines only", framing: stdio.Lines, in: "Content-Length: 40\r\n\r\n" + ping(1) + "\n",
			want: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid JSON: invalid character 'C' at start of value"}}` + "\n" + pong(1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, in := range map[string]io.Reader{
				"whole":      strings.NewReader(test.in),
				"bytes":      iotest.OneByteReader(strings.NewReader(test.in)),
				"end at end": iotest.DataErrReader(strings.NewReader(test.in)),
			} {
				var out strings.Builder
				err := stdio.NewIO(in, &out, &stdio.Options{MaxMessageBytes: 100, Framing: test.framing}).Serve(t.Context(), echo{})
				if test.err == "" {
					require.NoError(t, err, name)
				} else {
					require.EqualError(t, err, test.err, name)
				}
				require.ElementsMatch(t, each(test.want), each(out.String()), name)
			}
		})
	}
}

// streamed streams its responses, whose lengths are unknown at the beginning.
type streamed struct{}

func (streamed) ServeRPC(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Stream: func(w io.Writer) error {
		for _, part := range []string{`"a`, `b`, strings.Repeat("c", 200_000), `"`} {
			if _, err := io.WriteString(w, part); err != nil {
				return err
			}
		}
		return nil
	}}
}

func TestStreamedResponsesAreOneFrame(t *testing.T) {
	var out strings.Builder
	in := strings.NewReader(framed(ping(1) + "\n" + ping(2)))
	require.NoError(t, stdio.NewIO(in, &out, &stdio.Options{Framing: stdio.ContentLength}).Serve(t.Context(), streamed{}))
	result := `"ab` + strings.Repeat("c", 200_000) + `"`
	want := framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":%s}`+"\n"+`{"jsonrpc":"2.0","id":2,"result":%s}`+"\n", result, result))
	require.ElementsMatch(t, each(want), each(out.String()))
}

// Requests run concurrently, so their responses may come in any order.
func FuzzFramesAreAnsweredOneByOne(f *testing.F) {
	f.Add([]byte(framed(ping(1)+"\n"+ping(2))), uint8(1))
	f.Add([]byte("Content-Length: 3\n\n{}\nContent-Length:2\r\nX: y\r\n\r\n[]"), uint8(7))
	f.Add([]byte("Content-Length: 300\n\n{}"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		serve := func(r io.Reader) (string, error) {
			var out strings.Builder
			err := stdio.NewIO(r, &out, &stdio.Options{MaxMessageBytes: 100, Framing: stdio.ContentLength}).Serve(t.Context(), echo{})
			return out.String(), err
		}
		want, wantErr := serve(bytes.NewReader(in))
		got, err := serve(&stepReader{string(in), int(step) + 1})
		require.ElementsMatch(t, each(want), each(got))
		require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err))
	})
}

func TestPeerThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		over := make(chan error, 1)
		begun := time.Now()
		go func() { over <- stdio.NewIO(server, server, nil).Serve(t.Context(), echo{}) }()
		_, err := io.WriteString(client, ping(1)+"\n")
		require.NoError(t, err)
		require.EqualError(t, <-over, "transport/stdio: closed, since the peer read nothing for 30s")
		require.InDelta(t, 30, time.Since(begun).Seconds(), 0.1)
		_, err = client.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}
