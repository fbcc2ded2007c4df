package websocket_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// A bare connection is a WebSocket whose frames the test writes byte by byte (RFC 6455, section
// 5.2).
type bare struct {
	net.Conn
	r *bufio.Reader
}

func dialBare(t *testing.T, url string) *bare {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mcp\r\n\r\n")
	require.NoError(t, err)
	b := &bare{conn, bufio.NewReader(conn)}
	resp, err := http.ReadResponse(b.r, nil)
	require.NoError(t, err)
	require.Equal(t, 101, resp.StatusCode)
	return b
}

// The parts of the first byte of a frame.
const (
	fin          = 0x80
	continuation = 0x0
	text         = 0x1
	closing      = 0x8
	pinging      = 0x9
	ponging      = 0xA
)

// frame returns a frame with a mask of zeros, which does not change the payload.
func frame(first byte, payload string) string {
	switch n := len(payload); {
	case n < 126:
		return string([]byte{first, 0x80 | byte(n), 0, 0, 0, 0}) + payload
	default:
		head := binary.BigEndian.AppendUint16([]byte{first, 0x80 | 126}, uint16(n))
		return string(head) + "\x00\x00\x00\x00" + payload
	}
}

// read returns the next frame. Servers do not mask frames.
func (b *bare) read(t *testing.T) (first byte, payload string) {
	t.Helper()
	var head [2]byte
	_, err := io.ReadFull(b.r, head[:])
	require.NoError(t, err)
	require.Less(t, head[1], byte(126), "a short frame without a mask")
	body := make([]byte, head[1])
	_, err = io.ReadFull(b.r, body)
	require.NoError(t, err)
	return head[0], string(body)
}

func TestInvalidFramesCloseTheConnection(t *testing.T) {
	for _, test := range []struct {
		name   string
		frames string
		status uint16
	}{
		{"without a mask", string([]byte{fin | text, 2}) + "{}", 1002},
		{"without a mask, within a message", frame(text, "{") + string([]byte{fin | continuation, 1}) + "}", 1002},
		{"a ping without a mask", string([]byte{fin | pinging, 0}), 1002},
		{"a negative length", string([]byte{fin | text, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}), 1002},
		{"a close with a status that must not be sent", frame(fin|closing, "\x03\xed"), 1002},
		// Section 8.1 wants 1007. The library echoes a close frame before we see it, and does not
		// look at the reason. The connection ends all the same, and the reason goes nowhere but,
		// quoted, into the log.
		{"a close with a reason that is not UTF-8", frame(fin|closing, "\x03\xe8\xff"), 1000},
		{"reserved bits", frame(fin|0x40|text, "{}"), 1002},
		{"an unknown kind", frame(fin|0x3, "{}"), 1002},
		{"an unknown kind of control", frame(fin|0xB, ""), 1002},
		{"a continuation without a message", frame(fin|continuation, "{}"), 1002},
		{"a message within a message", frame(text, "{") + frame(fin|text, "{}"), 1002},
		{"a ping in parts", frame(pinging, "x"), 1002},
		{"a ping that is too long", frame(fin|pinging, strings.Repeat("x", 126)), 1002},
		{"a close with half a status", frame(fin|closing, "x"), 1002},
		{"a binary message", frame(fin|0x2, "{}"), 1003},
		{"a message that is not UTF-8", frame(fin|text, "\"\xff\""), 1007},
		{"a message whose parts together are not UTF-8", frame(text, "\"\xe2\x82") + frame(fin|continuation, "\""), 1007},
		{"a surrogate", frame(fin|text, "\"\xed\xa0\x80\""), 1007},
		{"a message that is too large", frame(fin|text, strings.Repeat(" ", 1001)), 1009},
		{"a message in parts that is too large", frame(text, strings.Repeat(" ", 600)) + frame(fin|continuation, strings.Repeat(" ", 600)), 1009},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := dialBare(t, serveRaw(t, methods{}, &websocket.Options{MaxMessageBytes: 1000}, nil))
			_, err := io.WriteString(b, frame(fin|text, ping))
			require.NoError(t, err)
			first, got := b.read(t)
			require.Equal(t, byte(fin|text), first)
			require.Equal(t, pong, got)
			_, err = io.WriteString(b, test.frames)
			require.NoError(t, err)
			first, got = b.read(t)
			require.Equal(t, byte(fin|closing), first, "%q", got)
			require.Equal(t, test.status, binary.BigEndian.Uint16([]byte(got)), "%q", got[2:])
		})
	}
}

func TestUnusualFramesAreAccepted(t *testing.T) {
	b := dialBare(t, serveRaw(t, methods{}, &websocket.Options{MaxMessageBytes: 1000}, nil))
	for _, test := range []struct {
		name, frames string
		first        byte
		want         string
	}{
		{"a message", frame(fin|text, ping), fin | text, pong},
		{"in two parts", frame(text, ping[:7]) + frame(fin|continuation, ping[7:]), fin | text, pong},
		{"with empty parts", frame(text, "") + frame(continuation, ping) + frame(continuation, "") + frame(fin|continuation, ""), fin | text, pong},
		{"a ping", frame(fin|pinging, "here?"), fin | ponging, "here?"},
		{"a pong without a ping", frame(fin|ponging, "here") + frame(fin|text, ping), fin | text, pong},
		{"a message of the maximal length", frame(fin|text, ping+strings.Repeat(" ", 1000-len(ping))), fin | text, pong},
		{"a character in two parts", frame(text, "\"\xe2\x82") + frame(fin|continuation, "\xac\""), fin | text,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid message: a message is a JSON object"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := io.WriteString(b, test.frames)
			require.NoError(t, err)
			first, got := b.read(t)
			require.Equal(t, test.first, first)
			require.Equal(t, test.want, got)
		})
	}
	t.Run("a ping in the middle of a message", func(t *testing.T) {
		_, err := io.WriteString(b, frame(text, ping[:7])+frame(fin|pinging, "still?")+frame(fin|continuation, ping[7:]))
		require.NoError(t, err)
		first, got := b.read(t)
		require.Equal(t, byte(fin|ponging), first)
		require.Equal(t, "still?", got)
		_, got = b.read(t)
		require.Equal(t, pong, got)
	})
	t.Run("the end", func(t *testing.T) {
		_, err := io.WriteString(b, frame(fin|closing, "\x03\xe8bye"))
		require.NoError(t, err)
		first, got := b.read(t)
		require.Equal(t, byte(fin|closing), first)
		require.Equal(t, uint16(1000), binary.BigEndian.Uint16([]byte(got)))
		_, err = b.r.ReadByte()
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestInvalidUpgradesAreRefused(t *testing.T) {
	url := serveRaw(t, methods{}, &websocket.Options{}, nil)
	for _, test := range []struct {
		name   string
		verb   string
		leave  string // the field that is left out
		set    [2]string
		status int
		want   string // the subprotocol
	}{
		{name: "a valid upgrade", status: 101, want: "mcp"},
		{name: "one subprotocol of several", set: [2]string{"Sec-Websocket-Protocol", "chat, mcp"}, status: 101, want: "mcp"},
		{name: "no subprotocol", leave: "Sec-Websocket-Protocol", status: 400},
		{name: "another subprotocol", set: [2]string{"Sec-Websocket-Protocol", "mcpx, xmcp, MCP"}, status: 400},
		{name: "another verb", verb: http.MethodPost, status: 405},
		{name: "no upgrade", leave: "Upgrade", status: 426},
		{name: "an upgrade to something else", set: [2]string{"Upgrade", "h2c"}, status: 426},
		{name: "another version", set: [2]string{"Sec-Websocket-Version", "8"}, status: 400},
		{name: "no key", leave: "Sec-Websocket-Key", status: 400},
		{name: "a key that is too short", set: [2]string{"Sec-Websocket-Key", "AAAA"}, status: 400},
		{name: "a foreign page", set: [2]string{"Origin", "http://evil.example"}, status: 403},
		{name: "a page without an origin", set: [2]string{"Origin", "null"}, status: 403},
		{name: "a page that looks like this machine's", set: [2]string{"Origin", "http://localhost.evil.example"}, status: 403},
		{name: "a page with a trailing dot", set: [2]string{"Origin", "http://localhost."}, status: 403},
		{name: "a page with userinfo", set: [2]string{"Origin", "http://localhost@evil.example"}, status: 403},
		{name: "a page with an invalid port", set: [2]string{"Origin", "http://localhost:80@evil.example"}, status: 403},
		{name: "a file", set: [2]string{"Origin", "file://"}, status: 403},
		{name: "another page of this machine", set: [2]string{"Origin", "http://localhost:6274"}, status: 101, want: "mcp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.verb == "" {
				test.verb = http.MethodGet
			}
			r, err := http.NewRequestWithContext(t.Context(), test.verb, url, nil)
			require.NoError(t, err)
			for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13",
				"Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Protocol": "mcp"} {
				r.Header.Set(name, value)
			}
			r.Header.Del(test.leave)
			if test.set[0] != "" {
				r.Header.Set(test.set[0], test.set[1])
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Do(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, test.status, resp.StatusCode)
			require.Equal(t, test.want, resp.Header.Get("Sec-Websocket-Protocol"))
		})
	}
}
