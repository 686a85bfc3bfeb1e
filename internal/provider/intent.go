package provider

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/wso2/terraform-provider-dbaas/internal/instance"
)

// Terraform does not tell Delete why it is called. Every plan of an instance
// that stands therefore records it in private state; a taint or -replace
// records nothing or "other".

const intentKey = "delete_intent"

type privateWriter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

type privateReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

func setIntent(ctx context.Context, private privateWriter, intent instance.Intent) diag.Diagnostics {
	value, err := json.Marshal(string(intent))
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Cannot record why Delete will be called", sentence(err.Error())+"\n\nTry again. If the error stays, "+fault)}
	}
	return private.SetKey(ctx, intentKey, value)
}

// intentOf reads the recorded intent; whatever is missing or unreadable is
// IntentOther, the one that refuses most.
func intentOf(ctx context.Context, private privateReader) instance.Intent {
	value, diags := private.GetKey(ctx, intentKey)
	var text string
	if diags.HasError() || json.Unmarshal(value, &text) != nil {
		return instance.IntentOther
	}
	switch intent := instance.Intent(text); intent {
	case instance.IntentDestroy, instance.IntentRename:
		return intent
	default:
		return instance.IntentOther
	}
}
