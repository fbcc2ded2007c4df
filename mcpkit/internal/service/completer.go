package service

import (
	"context"
	"fmt"
	"reflect"
)

// A Completer returns the values of a parameter that begin with prefix. others are the values of
// other parameters so far.
type Completer func(ctx context.Context, prefix string, others map[string]string) ([]string, error)

// CompleterOf adapts func([ctx,] prefix string [, others map[string]string]) []string [,
// error].
func CompleterOf(fn reflect.Value) (Completer, error) {
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
