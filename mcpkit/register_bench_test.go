package mcpkit_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// wide is a service of ten tools; each K makes ten types of arguments that no other service has.
type wide[K any] struct{}

// wideSearch nests as the arguments of real tools do.
type wideSearch[K any] struct {
	Query  string   `json:"query" validate:"required,min=1"`
	Limit  int      `json:"limit,omitempty" default:"10" validate:"min=1,max=100"`
	Tags   []string `json:"tags,omitempty"`
	Filter *struct {
		Field string `json:"field" validate:"required"`
		Op    string `json:"op" validate:"required,oneof=eq ne lt gt"`
		Value string `json:"value" validate:"required"`
	} `json:"filter,omitempty"`
	_ K
}

type wideHits[K any] struct {
	Hits []benchHit `json:"hits"`
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

// tenWide are ten services, a hundred tools.
func tenWide[K any]() []any {
	return []any{&wide[[10]K]{}, &wide[[11]K]{}, &wide[[12]K]{}, &wide[[13]K]{}, &wide[[14]K]{}, &wide[[15]K]{}, &wide[[16]K]{}, &wide[[17]K]{}, &wide[[18]K]{}, &wide[[19]K]{}}
}

// thousandMethods are a hundred services of ten methods, each with types of its own.
func thousandMethods() (services []any) {
	for _, ten := range [][]any{
		tenWide[int](), tenWide[int8](), tenWide[int16](), tenWide[int32](), tenWide[int64](),
		tenWide[uint](), tenWide[uint8](), tenWide[uint16](), tenWide[uint32](), tenWide[uint64](),
	} {
		services = append(services, ten...)
	}
	return services
}

// BenchmarkRegister1000 registers a thousand methods with nested arguments and results. No two
// share a type, so nothing is saved by remembering types.
func BenchmarkRegister1000(b *testing.B) {
	services := thousandMethods()
	b.ReportAllocs()
	for b.Loop() {
		s, err := mcpkit.New(nil)
		require.NoError(b, err)
		for i, service := range services {
			require.NoError(b, s.Register(service, mcpkit.Prefix("s"+strconv.Itoa(i))))
		}
	}
}
