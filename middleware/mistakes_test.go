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
		"middleware: RateLimit(0, 0): no caller could ever call anything; write for example RateLimit(10, 20)":   func() { middleware.RateLimit(0, 0) },
		"middleware: RateLimit(-1, 5): no caller could ever call anything; write for example RateLimit(10, 20)":  func() { middleware.RateLimit(-1, 5) },
		"middleware: RateLimit(5, -1): no caller could ever call anything; write for example RateLimit(10, 20)":  func() { middleware.RateLimitBy(5, -1, middleware.CallerOf) },
		"middleware: RateLimit(NaN, 5): no caller could ever call anything; write for example RateLimit(10, 20)": func() { middleware.RateLimit(math.NaN(), 5) },
		"middleware: Concurrency(0, 1): at least 1 call has to run, and at least 0 wait":                         func() { middleware.Concurrency(0, 1) },
		"middleware: Concurrency(1, -1): at least 1 call has to run, and at least 0 wait":                        func() { middleware.Concurrency(1, -1) },
		"middleware: Timeout(-1s): the time is negative":                                                         func() { middleware.Timeout(-time.Second) },
		"middleware: ResultLimit(0): a result needs at least 1 byte":                                             func() { middleware.ResultLimit(0) },
		"middleware: ResultLimit(-1): a result needs at least 1 byte":                                            func() { middleware.ResultLimitStrict(-1) },
		"middleware: Cache(-1s, CacheOptions{Entries: 0, MaxBytes: 0}): a value is negative":                     func() { middleware.Cache(-time.Second, middleware.CacheOptions{}) },
		"middleware: Retry(RetryOptions{Attempts: -1, Backoff: 0s}): a value is negative":                        func() { middleware.Retry(middleware.RetryOptions{Attempts: -1}) },
	} {
		require.PanicsWithValue(t, want, f)
	}
}
