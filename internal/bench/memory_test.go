// Package bench compares this project with other SDKs. cmd/compare and cmd/clients measure
// processes. The benchmarks here run in one process and measure mainly allocations, which are the
// same on every machine.
package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/answer"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/load"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
)

// BenchmarkMemory measures a request without a transport.
func BenchmarkMemory(b *testing.B) {
	benchmark(b, func(name string) answer.Func { return answer.Memory(name, len(work.Names)) })
}

// BenchmarkHTTPHandler measures a handler without a connection.
func BenchmarkHTTPHandler(b *testing.B) { benchmark(b, answer.Handler) }

func benchmark(b *testing.B, server func(name string) answer.Func) {
	for _, job := range load.Jobs {
		for _, name := range answer.Names {
			b.Run(strings.ReplaceAll(job.Name, " ", "")+"/"+name, func(b *testing.B) {
				f := server(name)
				msg, _ := job.Body(false)
				out := f(nil, msg)
				require.NoError(b, job.Check(out))
				b.ReportAllocs()
				for b.Loop() {
					out = f(out[:0], msg)
				}
			})
		}
	}
}
