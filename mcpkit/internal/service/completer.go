package service

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/naming"
)

// A Completer returns the values of a parameter that begin with prefix. others are the values of
// other parameters so far.
type Completer func(ctx context.Context, prefix string, others map[string]string) ([]string, error)

// Completer returns what completes a parameter: the method with the name.
func (s *Service) Completer(param, method string) (Completer, error) {
	m, ok := s.methods[method]
	if !ok {
		able := slices.DeleteFunc(slices.Sorted(maps.Keys(s.methods)), func(name string) bool {
			_, err := completerOf(s.methods[name].Func)
			return err != nil
		})
		if near := naming.Nearest(method, able); near != "" {
			s.completes[near] = true // the name is misspelt, not the method
		}
		return nil, fmt.Errorf("parameter %q is completed by method %q, which does not exist%s", param, method, naming.Hint(method, able))
	}
	s.completes[method] = true
	c, err := completerOf(m.Func)
	if err != nil {
		return nil, fmt.Errorf("completion method %s: %w", method, err)
	}
	return c, nil
}

// Completes reports whether a method completes a parameter of another one, and the annotation block
// does not say what else it is. That is known when Completer was asked for all parameters.
func (s *Service) Completes(method string) bool { return s.completes[method] && s.block[method] == nil }

// completerOf adapts func([ctx,] prefix string [, others map[string]string]) []string [,
// error].
func completerOf(fn reflect.Value) (Completer, error) {
	switch f := fn.Interface().(type) {
	case func(string) []string:
		return func(_ context.Context, p string, _ map[string]string) ([]string, error) { return f(p), nil }, nil
	case func(string) ([]string, error):
		return func(_ context.Context, p string, _ map[string]string) ([]string, error) { return f(p) }, nil
	case func(context.Context, string) []string:
		return func(ctx context.Context, p string, _ map[string]string) ([]string, error) { return f(ctx, p), nil }, nil
	case func(context.Context, string) ([]string, error):
		return func(ctx context.Context, p string, _ map[string]string) ([]string, error) { return f(ctx, p) }, nil
	case func(context.Context, string, map[string]string) []string:
		return func(ctx context.Context, p string, o map[string]string) ([]string, error) { return f(ctx, p, o), nil }, nil
	case func(context.Context, string, map[string]string) ([]string, error):
		return f, nil
	}
	return nil, fmt.Errorf("it is %s; write func(ctx context.Context, prefix string) ([]string, error), with others map[string]string as a last parameter where needed", fn.Type())
}
