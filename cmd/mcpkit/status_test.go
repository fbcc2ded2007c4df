package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// told adds a JSON-RPC error to each response with status 401, as some servers do.
func told(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		if answer.Code == http.StatusUnauthorized {
			answer.Header().Set("Content-Type", "application/json")
			answer.Header().Del("Content-Length")
			answer.Body.Reset()
			_, _ = answer.Body.WriteString(`{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"who are you?"}}`)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = io.Copy(w, answer.Body)
	})
}

func TestLoginAfterAStatusWithAJSONRPCError(t *testing.T) {
	as := oauthtest.New(t, nil)
	url := guardedBy(t, as, told)
	var out, errs bytes.Buffer
	std := streams{out: &out, err: &errs, browse: oauthtest.Open}
	require.Equal(t, exitProtocol, run(t.Context(), []string{"call", url, "count", "to:=1"}, std))
	require.Contains(t, errs.String(), "the server responded with HTTP status 401 Unauthorized: who are you? (code -32001)")
	require.Contains(t, errs.String(), "write --login to log in with the browser")
	require.Equal(t, exitOK, run(t.Context(), []string{"call", "--login", "--tokens", t.TempDir(), url, "count", "to:=1"}, std), errs.String())
	require.Equal(t, "1\n", out.String())
}

func TestAnHTTPStatusIsNotAMissingConnection(t *testing.T) {
	for _, code := range []int{401, 403, 404, 429, 500, 502, 503} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }))
		var out, errs bytes.Buffer
		require.Equal(t, exitProtocol, run(t.Context(), []string{"list", web.URL}, streams{out: &out, err: &errs}), code)
		require.Contains(t, errs.String(), http.StatusText(code))
		web.Close()
	}
}

func TestOneFailingListDoesNotHideTheOthers(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := func(text string) {
			w.Header().Set("Content-Type", "application/json")
			id := bytes.TrimSuffix(bytes.SplitN(bytes.SplitN(body, []byte(`"id":`), 2)[1], []byte(","), 2)[0], []byte("}"))
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(id)+`,`+text+`}`)
		}
		switch {
		case bytes.Contains(body, []byte("server/discover")):
			answer(`"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"ttlMs":0,"cacheScope":"public"}`)
		case bytes.Contains(body, []byte("tools/list")):
			answer(`"error":{"code":-32603,"message":"the tools are away"}`)
		case bytes.Contains(body, []byte("prompts/list")):
			answer(`"result":{"prompts":[{"name":"greet"}]}`)
		case bytes.Contains(body, []byte("templates/list")):
			answer(`"result":{"resourceTemplates":[]}`)
		default:
			answer(`"result":{"resources":[{"name":"a","uri":"x://a"}]}`)
		}
	}))
	defer web.Close()
	for _, command := range []string{"list", "inspect"} {
		var out, errs bytes.Buffer
		require.Equal(t, exitProtocol, run(t.Context(), []string{command, web.URL}, streams{out: &out, err: &errs}))
		require.Contains(t, out.String(), "greet")
		require.Contains(t, out.String(), "x://a")
		require.Equal(t, "mcpkit "+command+": client: tools/list: the tools are away (code -32603)\n", errs.String())
	}
}
