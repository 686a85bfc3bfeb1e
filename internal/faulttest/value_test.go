package faulttest

import (
	"fmt"
	"maps"
	"math/big"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// args are a block's arguments as plain values; what is left out is null.
type args map[string]any

// with is a copy in which some arguments are others.
func (a args) with(changes args) args {
	changed := maps.Clone(a)
	maps.Copy(changed, changes)
	return changed
}

// pack makes a block's value of plain ones. Nil arguments are a null block.
func pack(schema *tfprotov6.Schema, arguments args) (*tfprotov6.DynamicValue, error) {
	typ := schema.ValueType()
	value := tftypes.NewValue(typ, nil)
	if arguments != nil {
		var err error
		if value, err = valueOf(typ, arguments); err != nil {
			return nil, err
		}
	}
	packed, err := tfprotov6.NewDynamicValue(typ, value)
	return &packed, err
}

func valueOf(typ tftypes.Type, plain any) (tftypes.Value, error) {
	switch plain := plain.(type) {
	case nil:
		return tftypes.NewValue(typ, nil), nil
	case int:
		return tftypes.NewValue(typ, big.NewFloat(float64(plain))), nil
	case float64: // an int that was JSON meanwhile
		return tftypes.NewValue(typ, big.NewFloat(plain)), nil
	case map[string]any:
		return valueOf(typ, args(plain))
	case args:
		members := map[string]tftypes.Value{}
		types, err := memberTypes(typ, plain)
		if err != nil {
			return tftypes.Value{}, err
		}
		for name, member := range types {
			if members[name], err = valueOf(member, plain[name]); err != nil {
				return tftypes.Value{}, err
			}
		}
		return tftypes.NewValue(typ, members), nil
	default:
		return tftypes.NewValue(typ, plain), nil
	}
}

// memberTypes are those of an object, or of each member of a map.
func memberTypes(typ tftypes.Type, plain args) (map[string]tftypes.Type, error) {
	object, ok := typ.(tftypes.Object)
	types := map[string]tftypes.Type{}
	for name := range plain {
		switch {
		case !ok:
			types[name] = typ.(tftypes.Map).ElementType
		case object.AttributeTypes[name] == nil:
			return nil, fmt.Errorf("no argument %s", name)
		}
	}
	if ok {
		return object.AttributeTypes, nil
	}
	return types, nil
}

// text is an attribute of a state that is a text, empty when null.
func text(state tftypes.Value, name string) (string, error) {
	var members map[string]tftypes.Value
	if err := state.As(&members); err != nil {
		return "", err
	}
	var value *string
	if err := members[name].As(&value); err != nil || value == nil {
		return "", err
	}
	return *value, nil
}
