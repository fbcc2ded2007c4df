package httpserve

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/admission"
)

func TestBodiesAreReadWhole(t *testing.T) {
	const limit = 1 << 20
	for _, size := range []int{0, 1, 511, 512, 513, FreeBodyBytes, FreeBodyBytes + 1, 300_000, limit} {
		for name, declared := range map[string]int64{"exact": int64(size), "unknown": -1, "too small": 1, "too large": limit} {
			t.Run(fmt.Sprintf("%d bytes, length %s", size, name), func(t *testing.T) {
				want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
				r := httptest.NewRequest(http.MethodPost, "/", iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(want))))
				r.ContentLength = declared
				all := &admission.Bytes{Max: 4 * limit}
				held, other := admission.Held{All: all}, admission.Held{All: all}
				got, bad := ReadBody(httptest.NewRecorder(), r, limit, &held)
				require.Nil(t, bad)
				require.Equal(t, string(want), string(got))
				if size <= FreeBodyBytes && name == "exact" {
					require.True(t, other.Take(4*limit), "a small body is free")
					return
				}
				require.False(t, size > FreeBodyBytes && other.Take(4*limit), "a large body counts")
				held.Close()
				require.True(t, other.Take(4*limit), "until the request ends")
			})
		}
	}
}

func TestBodiesAreRefused(t *testing.T) {
	const limit = 100_000
	for _, test := range []struct {
		name   string
		body   io.Reader
		length int64
		most   int64 // bytes that all requests may hold
		want   BodyError
	}{
		{"declared too large", strings.NewReader("x"), limit + 1, 1 << 20, BodyError{413, "body is larger than 100000 bytes"}},
		{"too large", strings.NewReader(strings.Repeat("x", limit+1)), -1, 1 << 20, BodyError{413, "body is larger than 100000 bytes"}},
		{"larger than declared", strings.NewReader(strings.Repeat("x", limit+1)), 10, 1 << 20, BodyError{413, "body is larger than 100000 bytes"}},
		{"without memory for it", strings.NewReader(strings.Repeat("x", limit)), limit, 40_000, BodyError{503, BusyBytes}},
		{"broken", iotest.ErrReader(io.ErrUnexpectedEOF), 10, 1 << 20, BodyError{400, "body could not be read"}},
		{"too large for middleware", iotest.ErrReader(&http.MaxBytesError{Limit: 7}), 10, 1 << 20, BodyError{413, "body is larger than 7 bytes"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", test.body)
			r.ContentLength = test.length
			all := &admission.Bytes{Max: test.most}
			held, other := admission.Held{All: all}, admission.Held{All: all}
			require.True(t, other.Take(1), "another request holds something")
			defer held.Close()
			got, bad := ReadBody(httptest.NewRecorder(), r, limit, &held)
			require.Nil(t, got)
			require.Equal(t, &test.want, bad)
		})
	}
}
