package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnHTTPStatusIsNotAMissingConnection(t *testing.T) {
	for _, code := range []int{401, 404, 500} {
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
