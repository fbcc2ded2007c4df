package mcptest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTapeNamesWhatDiffers(t *testing.T) {
	tape := newTape([]*regexp.Regexp{regexp.MustCompile(`"took":(\d+)`)})
	tape.client([]byte(`{"id":1,"from":"2026-01-01T00:00:00Z"}`))
	tape.server([]byte(`{"id":1,"from":"2026-01-01T00:00:00Z","now":"2026-11-21T07:00:00.5+01:00","took":17,"requestState":"c2VhbGVk","elicitationId":"e-1"}`))
	tape.client([]byte(`{"id":2,"requestState":"c2VhbGVk","took":17}`))
	tape.server([]byte(`{"id":2,"requestState":"b3RoZXI-","text":"internal error (ref ABCD23)","took":17}`))
	tape.server([]byte(`{"id":3,"requestState":"c2VhbGVk","id2":"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}`))
	want := []line{
		{true, `{"id":1,"from":"2026-01-01T00:00:00Z"}`},
		{false, `{"id":1,"from":"2026-01-01T00:00:00Z","now":"<time>","took":"<value 1>","requestState":"<state 1>","elicitationId":"<elicitation 1>"}`},
		{true, `{"id":2,"requestState":"<state 1>","took":17}`}, // too short to be the server's for sure
		{false, `{"id":2,"requestState":"<state 2>","text":"internal error (ref <ref 1>)","took":"<value 1>"}`},
		{false, `{"id":3,"requestState":"<state 1>","id2":"<uuid 1>"}`},
	}
	require.Equal(t, `{"requestState":"b3RoZXI-"}`, tape.restore(`{"requestState":"<state 2>"}`))
	require.Equal(t, want, tape.stop())
	tape.server([]byte(`{"id":4}`))
	require.Len(t, tape.stop(), len(want), "nothing is taken down any more")
}

// The messages of the server stay JSON, and later messages use the same placeholders.
func FuzzTape(f *testing.F) {
	f.Add(`{"requestState":"abcdefghij"}`, `{"requestState":"abcdefghij"}`)
	f.Add(`{"n":[12,13],"t":"2026-11-21T07:00:00Z"}`, `{"x":"2026-11-21T07:00:00Z"}`)
	f.Add(`{"a":"\u0012","b":-12,"c":1.25,"d":125}`, `12`)
	f.Add(`{"a":"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}`, `"<uuid 1>"`)
	f.Fuzz(func(t *testing.T, server, client string) {
		if !json.Valid([]byte(server)) || strings.Contains(server+client, "<") {
			return
		}
		tape := newTape([]*regexp.Regexp{regexp.MustCompile(`\d\d+`)})
		tape.server([]byte(server))
		tape.client([]byte(client))
		lines := tape.stop()
		require.True(t, json.Valid([]byte(lines[0].text)), lines[0].text)
		if !strings.Contains(lines[1].text, "<time>") { // of which there may be several
			require.Equal(t, client, tape.restore(lines[1].text))
		}
	})
}
