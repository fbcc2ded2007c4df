package httpserve

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsJSON(t *testing.T) {
	for _, test := range []struct {
		contentType []string
		want        bool
	}{
		{[]string{"application/json"}, true},
		{[]string{"Application/JSON; charset=utf-8"}, true},
		{nil, false},
		{[]string{"text/plain"}, false},
		{[]string{"application/jsonp"}, false},
		{[]string{"application/json", "text/plain"}, false},
	} {
		require.Equal(t, test.want, IsJSON(http.Header{"Content-Type": test.contentType}), "%q", test.contentType)
	}
}

func TestAccepts(t *testing.T) {
	for _, test := range []struct {
		accept       []string
		json, stream bool
	}{
		{nil, true, true},
		{[]string{"application/json, text/event-stream"}, true, true},
		{[]string{"text/event-stream,application/json;charset=utf-8"}, true, true},
		{[]string{"application/json", "text/event-stream"}, true, true},
		{[]string{"*/*"}, true, true},
		{[]string{"application/*"}, true, false},
		{[]string{"Application/JSON"}, true, false},
		{[]string{"text/*;q=0.1"}, false, true},
		{[]string{"application/json, text/event-stream; q=0"}, true, false},
		{[]string{""}, false, false},
		{[]string{"image/png"}, false, false},
	} {
		json, stream := Accepts(http.Header{"Accept": test.accept})
		require.Equal(t, [2]bool{test.json, test.stream}, [2]bool{json, stream}, "%q", test.accept)
	}
}
