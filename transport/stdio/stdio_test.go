package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

func TestMain(m *testing.M) {
	switch os.Getenv("STDIO_TEST_SERVER") {
	case "echo":
		server()
		return
	case "guard":
		guardServer()
		return
	}
	testkit.VerifyTestMain(m)
}

// echo returns the params, or the method if there are none.
type echo struct{}

func (echo) ServeRPC(ctx context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	switch {
	case req.IsNotification():
		return nil
	case req.Method == "block":
		<-ctx.Done()
	case req.Method == "print":
		fmt.Println("printed")
	}
	if req.Params != nil {
		return &jsonrpc.Response{ID: req.ID, Result: req.Params}
	}
	return &jsonrpc.Response{ID: req.ID, Result: []byte(`"` + req.Method + `"`)}
}

// serveAll passes in the whole input and returns the whole output.
func serveAll(t *testing.T, in io.Reader, opts *stdio.Options) string {
	var out strings.Builder
	require.NoError(t, stdio.NewIO(in, &out, opts).Serve(t.Context(), echo{}))
	return out.String()
}

const tooLarge = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"request is larger than 100 bytes; raise stdio.Options.MaxMessageBytes"}}` + "\n"

func ping(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id) }
func pong(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"ping"}`+"\n", id) }

// sameLines compares responses in any order: on a busy machine one may be late.
func sameLines(t *testing.T, want, got string) {
	t.Helper()
	require.ElementsMatch(t, strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n"))
}

func TestLines(t *testing.T) {
	padded := func(n int) string { return ping(1) + strings.Repeat(" ", n-len(ping(1))) }
	for _, test := range []struct{ name, in, want string }{
		{"empty input", "", ""},
		{"one", ping(1) + "\n", pong(1)},
		{"two", ping(1) + "\n" + ping(2) + "\n", pong(1) + pong(2)},
		{"the last one without its end", ping(1) + "\n" + ping(2), pong(1) + pong(2)},
		{"blank lines", "\n\r\n \t\n" + ping(1) + "\n\n\n" + ping(2) + "\n \n  ", pong(1) + pong(2)},
		{"carriage returns", ping(1) + "\r\n" + ping(2) + "\r\n", pong(1) + pong(2)},
		{"garbage", "garbage\n" + ping(1) + "\n", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid JSON: invalid character 'g' at start of value"}}` + "\n" + pong(1)},
		{"half a message", `{"jsonrpc":"2.0","id":1,` + "\n" + ping(2) + "\n", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"invalid JSON: unexpected EOF after offset 24"}}` + "\n" + pong(2)},
		{"maximal length", padded(100) + "\n" + ping(2) + "\n", pong(1) + pong(2)},
		{"maximal length, carriage return", padded(100) + "\r\n" + ping(2) + "\n", pong(1) + pong(2)},
		{"maximal length, the last", padded(100), pong(1)},
		{"too large", padded(101) + "\n" + ping(2) + "\n", strings.Replace(tooLarge, "null", "1", 1) + pong(2)},
		{"much too large", strings.Repeat("x", 70_000) + "\n" + ping(2) + "\n", tooLarge + pong(2)},
		{"too large, the last", ping(1) + "\n" + strings.Repeat("x", 70_000), pong(1) + tooLarge},
		{"too large, but blank", strings.Repeat(" ", 70_000) + "\n" + ping(2) + "\n" + strings.Repeat("\t", 70_000), pong(2)},
		{"too large, but only with what is before it", strings.Repeat(" ", 70_000) + ping(2) + "\n", pong(2)},
	} {
		t.Run(test.name, func(t *testing.T) {
			opts := &stdio.Options{MaxMessageBytes: 100}
			sameLines(t, test.want, serveAll(t, strings.NewReader(test.in), opts))
			sameLines(t, test.want, serveAll(t, iotest.OneByteReader(strings.NewReader(test.in)), opts))
			sameLines(t, test.want, serveAll(t, iotest.DataErrReader(strings.NewReader(test.in)), opts))
		})
	}
}

func TestLinesOfAllLengths(t *testing.T) {
	var in, want strings.Builder
	for n := 1; n < 60_000; n += 1 + n/3 {
		text := strings.Repeat("x", n)
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"m","params":{"x":"%s"}}`+"\n", n, text)
		fmt.Fprintf(&want, `{"jsonrpc":"2.0","id":%d,"result":{"x":"%s"}}`+"\n", n, text)
	}
	again := strings.NewReplacer(`"id":`, `"id":1000`) // an ID that is in flight may not be used again
	twice := in.String() + again.Replace(in.String())
	sameLines(t, want.String()+again.Replace(want.String()), serveAll(t, strings.NewReader(twice), nil))
	sameLines(t, want.String()+again.Replace(want.String()), serveAll(t, iotest.HalfReader(strings.NewReader(twice)), nil))
}

func FuzzLinesAreAnsweredOneByOne(f *testing.F) {
	f.Add("{}\n\n1\r\n", uint8(3))
	f.Add("  \t  "+strings.Repeat(" ", 50)+"\r\n"+strings.Repeat(" ", 50), uint8(59))
	f.Add(ping(1)+"\n"+strings.Repeat("x", 50)+"\nx", uint8(7))
	f.Fuzz(func(t *testing.T, in string, step uint8) {
		var want int
		for line := range strings.SplitSeq(in, "\n") {
			if strings.Trim(line, " \t\r") != "" {
				want++
			}
		}
		in = strings.ReplaceAll(in, "method", "x") // so that every line is refused
		in = strings.ReplaceAll(strings.ReplaceAll(in, "result", "x"), "error", "x")
		in = strings.ReplaceAll(in, `\u`, "x")
		got := serveAll(t, &stepReader{in, int(step) + 1}, &stdio.Options{MaxMessageBytes: 40})
		require.Equal(t, want, strings.Count(got, "\n"))
	})
}

// stepReader reads at most n bytes at a time.
type stepReader struct {
	rest string
	n    int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.n)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestServeEnds(t *testing.T) {
	files := func(t *testing.T) (io.Reader, io.Writer, io.WriteCloser, io.ReadCloser) {
		inR, inW, err := os.Pipe()
		require.NoError(t, err)
		outR, outW, err := os.Pipe()
		require.NoError(t, err)
		return inR, outW, inW, outR
	}
	pipes := func(*testing.T) (io.Reader, io.Writer, io.WriteCloser, io.ReadCloser) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		return inR, outW, inW, outR
	}
	for name, open := range map[string]func(*testing.T) (io.Reader, io.Writer, io.WriteCloser, io.ReadCloser){"files": files, "pipes": pipes} {
		for _, test := range []struct {
			name string
			end  func(in io.WriteCloser, out io.ReadCloser, stop context.CancelFunc)
		}{
			{"with the input", func(in io.WriteCloser, _ io.ReadCloser, _ context.CancelFunc) { in.Close() }},
			{"with its context", func(_ io.WriteCloser, _ io.ReadCloser, stop context.CancelFunc) { stop() }},
			{"with the reader of its output", func(in io.WriteCloser, out io.ReadCloser, _ context.CancelFunc) {
				out.Close()
				_, _ = io.WriteString(in, ping(2)+"\n")
			}},
		} {
			t.Run(name+" "+test.name, func(t *testing.T) {
				r, w, in, out := open(t)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				over := make(chan error, 1)
				go func() { over <- stdio.NewIO(r, w, nil).Serve(ctx, echo{}) }()
				_, err := io.WriteString(in, ping(1)+"\n")
				require.NoError(t, err)
				line, err := bufio.NewReader(out).ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, pong(1), line)
				test.end(in, out, stop)
				require.NoError(t, <-over)
				in.Close()
				out.Close()
			})
		}
	}
}

// server is the program of the tests of New.
func server() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	out := os.Stdout
	if err := stdio.New(nil).Serve(context.Background(), echo{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Stdout != out {
		os.Exit(2)
	}
}

func start(t *testing.T, program string) (*exec.Cmd, io.WriteCloser, io.ReadCloser, *strings.Builder) {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "STDIO_TEST_SERVER="+program)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, in, out, &stderr
}

func TestAProgramOnItsStandardStreams(t *testing.T) {
	cmd, in, out, stderr := start(t, "echo")
	_, err := io.WriteString(in, ping(1)+"\n"+`{"jsonrpc":"2.0","id":2,"method":"print"}`+"\n")
	require.NoError(t, err)
	require.NoError(t, in.Close())
	all, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	sameLines(t, pong(1)+`{"jsonrpc":"2.0","id":2,"result":"print"}`+"\n", string(all))
	require.Equal(t, "printed\n", stderr.String())
}

func TestProgramExitsNormallyWhenTheClientDisconnects(t *testing.T) {
	cmd, in, out, stderr := start(t, "echo")
	require.NoError(t, out.Close())
	_, err := io.WriteString(in, ping(1)+"\n")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.Empty(t, stderr.String())
}

func TestSecondServeOnStandardInputFails(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	in := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = in }()
	begun := make(chan struct{})
	over := make(chan error, 1)
	go func() { over <- stdio.New(nil).Serve(t.Context(), signalling{begun}) }()
	_, err = io.WriteString(w, `{"jsonrpc":"2.0","method":"n"}`+"\n")
	require.NoError(t, err)
	<-begun
	require.EqualError(t, stdio.New(nil).Serve(t.Context(), echo{}), "transport/stdio: another Serve already reads standard input; use NewIO for other streams")
	require.NoError(t, w.Close())
	require.NoError(t, <-over)
}

type signalling struct{ begun chan struct{} }

func (s signalling) ServeRPC(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	close(s.begun)
	return nil
}

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
