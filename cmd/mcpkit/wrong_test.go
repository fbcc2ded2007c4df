package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// What cannot be meant is said before anything is started or asked.
func TestArgumentsThatCannotBeMeant(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-revision", "2025", "true"}, exitUsage,
			"mcpkit list: -revision 2025: unknown revision; known are 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05\n"},
		{[]string{"ftp://x"}, exitUsage, `mcpkit list: "ftp://x": the scheme is none of http, https, ws and wss` + "\n"},
		{[]string{"http:///mcp"}, exitUsage, `mcpkit list: "http:///mcp" has no host` + "\n"},
		{[]string{"unix:"}, exitUsage, `mcpkit list: "unix:" names no socket; write unix:/path/of/the.sock` + "\n"},
		{[]string{"-header", "a: b", "true"}, exitUsage, `mcpkit list: -header is for servers at a URL; "true" is none` + "\n"},
		{[]string{"no-such-host.invalid:18090"}, exitConnection,
			`mcpkit list: client: the server does not start: exec: "no-such-host.invalid:18090": executable file not found in $PATH` + "\n" +
				"mcpkit list: for a server over HTTP write http://no-such-host.invalid:18090\n"},
	} {
		var out, said bytes.Buffer
		require.Equal(t, test.code, run(t.Context(), append([]string{"list"}, test.args...), streams{out: &out, err: &said}), "%q", test.args)
		require.Equal(t, test.want, said.String())
		require.Empty(t, out.String())
	}
}

// A program that says nothing does not take longer than it was given, and a moment to be ended.
func TestDialingTakesNoLongerThanTheTimeout(t *testing.T) {
	var out, said bytes.Buffer
	require.Equal(t, exitConnection, run(t.Context(), []string{"list", "-timeout", "200ms", "sleep 1000"}, streams{out: &out, err: &said}))
	require.Equal(t, "mcpkit list: client: no server answered within 200ms; see -timeout\n", said.String())
}
