package reflectx

import (
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// contradictions records rules that no value can satisfy together, since their function could never
// be called. It only finds contradictions between numbers and lists.
func (c *compiler) contradictions(root *node) {
	c.walk(root, map[*object]bool{}, func(f *field) {
		if !c.sound(f) {
			return
		}
		for n := f.spec; n != nil; n = n.elem {
			if f.sf == nil {
				return // a discriminator
			}
			if text := n.impossible(); text != "" {
				c.errorf("the rules %s allow nothing: %s", ruleTags(f), text)
				return
			}
		}
	})
}

// ruleTags quotes the tags that the rules come from.
func ruleTags(f *field) string {
	var tags []string
	for _, key := range []string{"validate", "jsonschema"} {
		if v := f.sf.Tag.Get(key); v != "" {
			tags = append(tags, strconv.Quote(v))
		}
	}
	return strings.Join(tags, " and ")
}

// impossible returns why no value can satisfy the keywords of n, and how to correct them, or "".
func (n *spec) impossible() string {
	kw := n.kw
	switch {
	case n.own:
		return "" // the type's own schema may allow more than the decoder reads
	case kw.Const != nil:
		if raw := json.RawMessage(jsonText(kw.Const)); !n.accepts(raw) {
			return string(raw) + " is the one value that is left, and another rule refuses it; drop one of them"
		}
		return ""
	case len(kw.Enum) > 0:
		if !slices.ContainsFunc(kw.Enum, func(v any) bool { return n.accepts(json.RawMessage(jsonText(v))) }) {
			return "another rule refuses each value that is listed; drop one of them"
		}
		return ""
	}
	switch n.shape {
	case shapeInt, shapeUint, shapeFloat:
		return n.impossibleRange()
	case shapeSlice, shapeArray:
		return impossibleCount(kw.MinItems, kw.MaxItems, n.t.Kind() == reflect.Array)
	case shapeMap:
		return impossibleCount(kw.MinProperties, kw.MaxProperties, false)
	case shapeString:
		return impossibleCount(kw.MinLength, kw.MaxLength, false)
	}
	return ""
}

func impossibleCount(low, high *uint64, array bool) string {
	if low == nil || high == nil || *low <= *high {
		return ""
	}
	if array {
		return "the array has another length; drop the rule"
	}
	return "a length of at least " + strconv.FormatUint(*low, 10) + " is more than one of at most " + strconv.FormatUint(*high, 10) + "; write the smaller one as the least"
}

// impossibleRange is impossible for the numeric limits. Integers need a whole number between them.
func (n *spec) impossibleRange() string {
	kw := n.kw
	if kw.Minimum == "" && kw.ExclusiveMinimum == "" || kw.Maximum == "" && kw.ExclusiveMaximum == "" {
		return ""
	}
	if kw.ExclusiveMinimum == "" && kw.ExclusiveMaximum == "" {
		if low, high, ok := integers(kw.Minimum, kw.Maximum); ok && low <= high {
			return ""
		}
	}
	low, lowText, lowOpen := tighter(kw.Minimum, kw.ExclusiveMinimum, 1)
	high, highText, highOpen := tighter(kw.Maximum, kw.ExclusiveMaximum, -1)
	if low == nil || high == nil {
		return ""
	}
	empty := low.Cmp(high) > 0 || low.Cmp(high) == 0 && (lowOpen || highOpen)
	if !empty && n.shape != shapeFloat {
		first := new(big.Int).Div(low.Num(), low.Denom()) // rounds down, since the denominator is positive
		if whole := new(big.Rat).SetInt(first); whole.Cmp(low) < 0 || lowOpen {
			first.Add(first, big.NewInt(1))
		}
		reach := new(big.Rat).SetInt(first).Cmp(high)
		empty = reach > 0 || reach == 0 && highOpen
	}
	if !empty {
		return ""
	}
	what := "no number is "
	if n.shape != shapeFloat {
		what = "no integer is "
	}
	return what + boundText(lowText, lowOpen, "at least ", "more than ") + " and " + boundText(highText, highOpen, "at most ", "less than ") + "; write the smaller one as the least"
}

func boundText(text string, open bool, closed, beyond string) string {
	if open {
		return beyond + text
	}
	return closed + text
}

// tighter returns the limit that allows less: the larger one if sign is 1. isOpen reports that the
// limit itself is not allowed.
func tighter(closed, open json.Number, sign int) (bound *big.Rat, text string, isOpen bool) {
	a, okA := new(big.Rat).SetString(string(closed))
	b, okB := new(big.Rat).SetString(string(open))
	switch {
	case okA && (!okB || a.Cmp(b) == sign):
		return a, string(closed), false
	case okB:
		return b, string(open), true
	}
	return nil, "", false
}
