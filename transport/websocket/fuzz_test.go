package websocket_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// Whatever bytes a client sends, all that comes back is whole frames without a mask, whose text is
// JSON, and the connection ends when the client does.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		frame(fin|text, ping), frame(text, ping[:5]) + frame(fin|continuation, ping[5:]), frame(fin|pinging, "x") + frame(fin|text, ping),
		frame(fin|closing, "\x03\xe8"), frame(fin|0x2, "x"), frame(fin|text, "[]"), frame(fin|text, "\xff"), string([]byte{fin | text, 2}) + "{}",
		string([]byte{fin | text, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}), frame(fin|0x40|text, "x"), "",
	} {
		f.Add([]byte(seed))
	}
	handler := websocket.NewHandler(methods{}, &websocket.Options{MaxMessageBytes: 1000, ShutdownTimeout: time.Millisecond, KeepAlive: -1, Logger: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(handler)
	f.Cleanup(func() {
		require.NoError(f, handler.Shutdown(context.Background()))
		server.Close()
	})
	f.Fuzz(func(t *testing.T, sent []byte) {
		b := dialBare(t, strings.TrimPrefix(server.URL, "http://"))
		// Ends with the connection.
		go func() {
			_, _ = b.Write(sent)
			_, _ = io.WriteString(b, frame(fin|closing, "\x03\xe8"))
			_ = b.Conn.(interface{ CloseWrite() error }).CloseWrite()
		}()
		got, _ := io.ReadAll(b.r) // the connection may be reset, since not all was read
		for len(got) > 0 {
			if len(got) < 2 {
				return // cut off
			}
			head, length, rest := got[0], int(got[1]), got[2:]
			require.Less(t, length, 128, "a mask")
			if length == 126 && len(rest) >= 2 {
				length, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
			}
			if length > len(rest) {
				return
			}
			payload := rest[:length]
			got = rest[length:]
			switch head & 0x0f {
			case text:
				require.True(t, utf8.Valid(payload))
				require.True(t, json.Valid(bytes.TrimSpace(payload)), "%q", payload)
			case closing:
				require.Empty(t, got, "something comes behind the close")
			default:
				require.Equal(t, byte(ponging), head&0x0f)
			}
		}
	})
}
