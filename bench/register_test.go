package bench

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/bench/internal/load"
	"github.com/mcpkit/mcpkit-go/bench/internal/work"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// wide is a service of ten tools. Each K has its own types of arguments and results, so that
// caching types does not help.
type wide[K any] struct{}

type wideSearch[K any] struct {
	Query  string       `json:"query" validate:"required,min=1"`
	Limit  int          `json:"limit,omitempty" default:"10" validate:"min=1,max=100"`
	Tags   []string     `json:"tags,omitempty"`
	Filter *work.Filter `json:"filter,omitempty"`
	_      K
}

type wideHits[K any] struct {
	Hits []work.Hit `json:"hits"`
	_    K
}

func (wide[K]) M0(wideSearch[[0]K]) (h wideHits[[0]K]) { return }
func (wide[K]) M1(wideSearch[[1]K]) (h wideHits[[1]K]) { return }
func (wide[K]) M2(wideSearch[[2]K]) (h wideHits[[2]K]) { return }
func (wide[K]) M3(wideSearch[[3]K]) (h wideHits[[3]K]) { return }
func (wide[K]) M4(wideSearch[[4]K]) (h wideHits[[4]K]) { return }
func (wide[K]) M5(wideSearch[[5]K]) (h wideHits[[5]K]) { return }
func (wide[K]) M6(wideSearch[[6]K]) (h wideHits[[6]K]) { return }
func (wide[K]) M7(wideSearch[[7]K]) (h wideHits[[7]K]) { return }
func (wide[K]) M8(wideSearch[[8]K]) (h wideHits[[8]K]) { return }
func (wide[K]) M9(wideSearch[[9]K]) (h wideHits[[9]K]) { return }

// A registrar registers ten tools in three ways.
type registrar struct {
	methods  func(*mcpkit.Server, string) error
	builders func(*mcpkit.Server, string) error
	gosdk    func(*mcp.Server, string)
}

func ten[K any]() registrar {
	return registrar{
		methods: func(s *mcpkit.Server, prefix string) error {
			return s.Register(&wide[K]{}, mcpkit.Prefix(prefix))
		},
		builders: func(s *mcpkit.Server, prefix string) error {
			w := wide[K]{}
			for i, fn := range []any{w.M0, w.M1, w.M2, w.M3, w.M4, w.M5, w.M6, w.M7, w.M8, w.M9} {
				if err := s.Add(mcpkit.NewTool(prefix+"_m"+strconv.Itoa(i), fn)); err != nil {
					return err
				}
			}
			return nil
		},
		gosdk: func(s *mcp.Server, prefix string) {
			w := wide[K]{}
			addTool(s, prefix+"_m0", w.M0)
			addTool(s, prefix+"_m1", w.M1)
			addTool(s, prefix+"_m2", w.M2)
			addTool(s, prefix+"_m3", w.M3)
			addTool(s, prefix+"_m4", w.M4)
			addTool(s, prefix+"_m5", w.M5)
			addTool(s, prefix+"_m6", w.M6)
			addTool(s, prefix+"_m7", w.M7)
			addTool(s, prefix+"_m8", w.M8)
			addTool(s, prefix+"_m9", w.M9)
		},
	}
}

// addTool lets go-sdk derive the schemas, as it does for tools without schemas.
func addTool[In, Out any](s *mcp.Server, name string, f func(In) Out) {
	mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		return nil, f(in), nil
	})
}

func hundred[K any]() []registrar {
	return []registrar{ten[[10]K](), ten[[11]K](), ten[[12]K](), ten[[13]K](), ten[[14]K](), ten[[15]K](), ten[[16]K](), ten[[17]K](), ten[[18]K](), ten[[19]K]()}
}

func thousand() (all []registrar) {
	for _, some := range [][]registrar{
		hundred[int](), hundred[int8](), hundred[int16](), hundred[int32](), hundred[int64](),
		hundred[uint](), hundred[uint8](), hundred[uint16](), hundred[uint32](), hundred[uint64](),
	} {
		all = append(all, some...)
	}
	return all
}

// BenchmarkRegister1000 registers a thousand tools with nested arguments and results: as services
// of ten methods, one by one, and with go-sdk's AddTool. cpu-ms/op is the CPU time of all threads,
// garbage collection included.
func BenchmarkRegister1000(b *testing.B) {
	all := thousand()
	b.Run("mcpkit/methods", func(b *testing.B) {
		measure(b, func() {
			s := mcpkit.MustNew(nil)
			for i, r := range all {
				require.NoError(b, r.methods(s, "s"+strconv.Itoa(i)))
			}
		})
	})
	b.Run("mcpkit/one-by-one", func(b *testing.B) {
		measure(b, func() {
			s := mcpkit.MustNew(nil)
			for i, r := range all {
				require.NoError(b, r.builders(s, "s"+strconv.Itoa(i)))
			}
		})
	})
	b.Run("go-sdk/AddTool", func(b *testing.B) {
		measure(b, func() {
			s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
			for i, r := range all {
				r.gosdk(s, "s"+strconv.Itoa(i))
			}
		})
	})
}

// measure runs f as a benchmark and reports its CPU time if the system supports that.
func measure(b *testing.B, f func()) {
	b.ReportAllocs()
	before, err := load.CPU(os.Getpid())
	for b.Loop() {
		f()
	}
	if err != nil {
		return
	}
	after, err := load.CPU(os.Getpid())
	require.NoError(b, err)
	b.ReportMetric(float64(after-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
}
