package ours

import (
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/wide"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A registrar registers ten tools.
type registrar func(each func(func(name string)), s *mcpkit.Server)

func ten[K any](each func(func(name string)), s *mcpkit.Server) {
	var w wide.Tools[K]
	each(func(name string) { add(s, name, w.M0) })
	each(func(name string) { add(s, name, w.M1) })
	each(func(name string) { add(s, name, w.M2) })
	each(func(name string) { add(s, name, w.M3) })
	each(func(name string) { add(s, name, w.M4) })
	each(func(name string) { add(s, name, w.M5) })
	each(func(name string) { add(s, name, w.M6) })
	each(func(name string) { add(s, name, w.M7) })
	each(func(name string) { add(s, name, w.M8) })
	each(func(name string) { add(s, name, w.M9) })
}

func hundred[K any]() []registrar {
	return []registrar{ten[[10]K], ten[[11]K], ten[[12]K], ten[[13]K], ten[[14]K], ten[[15]K], ten[[16]K], ten[[17]K], ten[[18]K], ten[[19]K]}
}

// Wide adds n tools, at most 1,000, each with its own types of arguments and results.
func Wide(s *mcpkit.Server, n int) {
	i := 0
	for _, some := range [][]registrar{
		hundred[int](), hundred[int8](), hundred[int16](), hundred[int32](), hundred[int64](),
		hundred[uint](), hundred[uint8](), hundred[uint16](), hundred[uint32](), hundred[uint64](),
	} {
		for _, register := range some {
			register(func(add func(name string)) {
				if i++; i <= n {
					add("tool" + strconv.Itoa(i))
				}
			}, s)
		}
	}
}

func add(s *mcpkit.Server, name string, method any) {
	if err := s.Add(mcpkit.NewTool(name, method)); err != nil {
		panic(err)
	}
}
