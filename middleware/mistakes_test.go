package middleware_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/middleware"
)

func TestLimitsThatCannotBeMeantPanic(t *testing.T) {
	for want, f := range map[string]func(){
		"middleware: RateLimit(0, 5) allows no calls; write for example RateLimit(10, 20)":   func() { middleware.RateLimit(0, 5) },
		"middleware: RateLimit(5, 0) allows no calls; write for example RateLimit(10, 20)":   func() { middleware.RateLimit(5, 0, middleware.By(middleware.CallerOf)) },
		"middleware: RateLimit(NaN, 5) allows no calls; write for example RateLimit(10, 20)": func() { middleware.RateLimit(math.NaN(), 5) },
		"middleware: Concurrency(0): the limit is less than 1":                               func() { middleware.Concurrency(0) },
		"middleware: Timeout(-1s): the time is negative":                                     func() { middleware.Timeout(-time.Second) },
		"middleware: ResultLimit(0): the limit is less than 1 byte":                          func() { middleware.ResultLimit(0) },
		"middleware: ResultLimit(-1): the limit is less than 1 byte":                         func() { middleware.ResultLimit(-1, middleware.NoTruncation()) },
		"middleware: Cache(-1s) with 0 entries of 0 bytes: a value is negative":              func() { middleware.Cache(-time.Second) },
		"middleware: By: the key function is nil":                                            func() { middleware.By[string](nil) },
	} {
		require.PanicsWithValue(t, want, f)
	}
}
