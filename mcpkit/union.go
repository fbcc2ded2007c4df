package mcpkit

import (
	"fmt"
	"reflect"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Union lets fields, elements, parameters and results have the interface type T: their values are
// objects of one of the cases, which are structs or pointers to structs, and the member that
// discriminator names says which.
//
//	type Shape interface{ Area() float64 }
//
//	mcpkit.New(&Canvas{}, mcpkit.Union[Shape]("kind", Circle{}, &Polygon{}))
//
// A Circle is then {"kind":"circle","radius":1} in arguments and in results: the cases themselves
// have no such field. A case is called as its type in snake case, or what a method UnionName()
// string of it returns, which is called once on the value given here. Arguments become values of
// exactly the types given, here Circle and *Polygon; in results a type and pointers to it are the
// same.
//
// The schema is an object with the discriminator and an anyOf of the cases. A value that names no
// case is refused with the list of cases. A union may contain itself.
func Union[T any](discriminator string, cases ...T) Option {
	site := unionSite(reflect.TypeFor[T]())
	return newOption(func(c *config) error {
		iface := reflect.TypeFor[T]()
		if c.unions[iface] != nil {
			return &reflectx.Error{Site: site, Msg: "the union is given twice"}
		}
		list := make([]reflectx.UnionCase, len(cases))
		for i, one := range cases {
			list[i].Type = reflect.TypeOf(one)
			if named, ok := any(one).(interface{ UnionName() string }); ok {
				list[i].Name = named.UnionName()
			}
		}
		u, err := reflectx.NewUnion(site, iface, discriminator, list)
		if err != nil {
			return err
		}
		if c.unions == nil {
			c.unions = map[reflect.Type]*reflectx.Union{}
		}
		c.unions[iface] = u
		return nil
	})
}

// unionSite returns where Union was called.
func unionSite(t reflect.Type) string { return calledFrom(fmt.Sprintf("mcpkit: Union[%s]", t)) }

// appendValue appends the JSON of v, with the discriminators of its unions.
func (s *Server) appendValue(dst []byte, v reflect.Value) ([]byte, error) {
	if encode := s.encoderOf(v); encode != nil {
		return encode(dst, v)
	}
	return jsonx.AppendValue(dst, v)
}

// marshalValue returns the JSON of what a method returned, with the discriminators of unions in it.
func (s *Server) marshalValue(v reflect.Value) (string, error) {
	if encode := s.encoderOf(v); encode != nil {
		text, err := encode(nil, v)
		return string(text), err
	}
	return jsonx.MarshalValue(v)
}

// encoderOf returns the encoder of v's type if it contains a union, and makes it on first use.
func (s *Server) encoderOf(v reflect.Value) reflectx.Encoder {
	if len(s.config.unions) == 0 || !v.IsValid() {
		return nil
	}
	t := v.Type()
	encode, ok := s.encoders.Load(t)
	if !ok {
		encode, _ = s.encoders.LoadOrStore(t, reflectx.OutputEncoder(t, reflectx.InputOptions{Unions: s.config.unions}))
	}
	return encode.(reflectx.Encoder)
}
